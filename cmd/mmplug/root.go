package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong
	exitUsage  = 2 // the command line is wrong
	exitCheck  = 3 // a check that was asked for did not hold
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a fault of the command line.
type usageError struct{ error }

// checkError says that a check did not hold. What was found is already out.
type checkError struct{ error }

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	out := &sink{Writer: std.out}
	std.out = out
	root := newRoot(std)
	root.SetArgs(args)
	err := root.ExecuteContext(plugins.WithLogger(ctx, pluginLogger(std)))
	if out.err != nil {
		err = cannot("write", "standard output", out.err)
	}
	var usage usageError
	var check checkError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // whoever read the output has gone
	case errors.As(err, &check):
		if check.error != nil {
			complain(std.err, check.error)
		}
		return exitCheck
	case errors.As(err, &usage):
		complain(std.err, usage.error)
		return exitUsage
	case ctx.Err() != nil:
		complain(std.err, errors.New("interrupted; nothing was changed by the step under way"))
		return exitFailed
	}
	complain(std.err, err)
	return exitFailed
}

// complain writes an error as one line.
func complain(w io.Writer, err error) {
	var path *fs.PathError
	text := err.Error()
	if errors.As(err, &path) && text == path.Error() {
		text = fmt.Sprintf("%s: %v%s", path.Path, path.Err, hint(err))
	}
	fmt.Fprintln(w, "mmplug: "+printable(oneLine(text))) //nolint:errcheck // stderr may be gone
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func newRoot(std stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "mmplug",
		Short: "Retrieval for conversations, decoded as map matching",
		Long: `mmplug finds the right passage for follow-up questions. It treats the candidates
of each turn as noisy observations, the links and neighbours of a corpus as the
road network, and decodes the most plausible path of passages.

Start with "mmplug demo"; then "mmplug index DIR --out IDX" and "mmplug chat --index IDX".`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help")}
	})
	root.AddCommand(
		newDemo(std), newIndex(std), newAsk(std), newChat(std), newDecode(std),
		newTrace(std), newGraph(std), newAdapters(std), newVersion(std),
		newPolicy(std), newPlugin(std), newDoctor(std),
		newEval(std), newTune(std),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strictArgs(root)
	return root
}

// strictArgs makes wrong arguments of every command usage errors that say what
// is right, and keeps a shell from offering files where none are wanted.
func strictArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strictArgs(sub)
	}
	check := cmd.Args
	switch {
	case cmd.Name() == "help":
		cmd.Args = knownCommand
		return
	case cmd.HasSubCommands():
		cmd.Args = noSuchCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return
	case check == nil:
		check = cobra.NoArgs
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		given := count(len(args), "argument", "arguments")
		return usageError{fmt.Errorf("%s given; usage: %s", given, cmd.UseLine())}
	}
}

// noSuchCommand refuses the name of a command that is not there.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usageError{fmt.Errorf("there is no command %q; did you mean %q?", cmd.CommandPath()+" "+args[0], cmd.CommandPath()+" "+near[0])}
	}
	return usageError{fmt.Errorf("there is no command %q; see %q", cmd.CommandPath()+" "+args[0], cmd.CommandPath()+" --help")}
}

// knownCommand checks the arguments of help.
func knownCommand(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return noSuchCommand(found, rest)
	}
	return nil
}
