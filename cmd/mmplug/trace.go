package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

const traceFiles = `FILE is a trace, what decode, ask, chat or demo printed with --json (the last
turn's trace is taken), or a session file of ask or chat; "-" is standard input.`

func newTrace(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Show, draw or compare traces",
		Long:  "Show, draw or compare traces.\n\n" + traceFiles,
	}
	cmd.AddCommand(newTraceShow(std), newTraceHTML(std), newTraceDiff(std))
	return cmd
}

func newTraceShow(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE|-",
		Short: "Print a trace as a table",
		Long:  "Print a trace as a table.\n\n" + traceFiles,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			trace, err := readFile(cmd.Context(), std, args[0], readAnyTrace)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, trace)
			}
			_, err = fmt.Fprintln(std.out, trace.Text())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the trace as JSON")
	return cmd
}

func newTraceHTML(std stdio) *cobra.Command {
	var out string
	var options mapmatched.HTMLOptions
	cmd := &cobra.Command{
		Use:   "html FILE|-",
		Short: "Draw a trace as a self-contained HTML page",
		Long: "Draw a trace as a self-contained HTML page. A session file shows every candidate;\n" +
			"other traces may hold the path alone.\n\n" + traceFiles,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if options.MaxCandidates < 0 {
				return usageError{fmt.Errorf("--candidates is %d: give 1 or more, or 0 for 12", options.MaxCandidates)}
			}
			trace, err := readFile(cmd.Context(), std, args[0], readAnyTrace)
			if err != nil {
				return err
			}
			return writeFile(std, out, func(w io.Writer) error { return trace.WriteHTML(w, &options) })
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "-", "file to write, - for standard output")
	cmd.Flags().StringVar(&options.Title, "title", "", "title of the page")
	cmd.Flags().IntVar(&options.MaxCandidates, "candidates", 0, "candidates drawn a turn, 0 for 12")
	return cmd
}

func newTraceDiff(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff FILE FILE",
		Short: "Say how two traces differ; exit status 3 when they do",
		Long:  "Say how two traces differ. The exit status is 0 when they are the same, 3 when they are not.\n\n" + traceFiles,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && args[1] == "-" {
				return usageError{errors.New("only one of the two traces can be standard input")}
			}
			a, err := readFile(cmd.Context(), std, args[0], readAnyTrace)
			if err != nil {
				return err
			}
			b, err := readFile(cmd.Context(), std, args[1], readAnyTrace)
			if err != nil {
				return err
			}
			diff := mapmatched.DiffTraces(a, b)
			if asJSON {
				err = writeJSON(std.out, diff)
			} else {
				_, err = fmt.Fprintln(std.out, diff.String())
			}
			if err == nil && !diff.Empty() {
				err = checkError{}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readAnyTrace finds the trace in any file that this program writes.
func readAnyTrace(r io.Reader) (*mapmatched.Trace, error) {
	raw, values, err := lastValue(r)
	if err != nil {
		return nil, err
	}
	var file struct {
		Schema string            `json:"schema"`
		Steps  json.RawMessage   `json:"steps"`
		Turns  []json.RawMessage `json:"turns"`
		Trace  json.RawMessage   `json:"trace"`
	}
	_ = json.Unmarshal(raw, &file) // what is no such object is for ReadTrace to complain about
	switch {
	case values > 1 && file.Trace == nil:
		return nil, fmt.Errorf("not a trace but %d JSON values; give one of them", values)
	case file.Schema == mapmatched.SessionSchema:
		return mapmatched.ReadSessionTrace(bytes.NewReader(raw))
	case file.Schema == policy.ConversationSchema:
		return policy.ReadConversationTrace(bytes.NewReader(raw))
	case file.Steps != nil:
	case file.Trace != nil:
		raw = file.Trace
	case file.Turns != nil:
		if len(file.Turns) == 0 {
			return nil, errors.New("there are no turns in it, so there is no trace")
		}
		var last struct {
			Trace json.RawMessage `json:"trace"`
		}
		if err := json.Unmarshal(file.Turns[len(file.Turns)-1], &last); err != nil || last.Trace == nil {
			return nil, errors.New("the turns in it have no trace; print the answers with --json")
		}
		raw = last.Trace
	}
	return mapmatched.ReadTrace(bytes.NewReader(raw))
}

// lastValue reads JSON values, one after another, and returns the last and how
// many there are.
func lastValue(r io.Reader) (last json.RawMessage, values int, err error) {
	for decoder := json.NewDecoder(r); ; values++ {
		var value json.RawMessage
		err := decoder.Decode(&value)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, 0, errors.New("not a trace: the JSON ends in the middle")
		case errors.Is(err, io.EOF) && values == 0:
			return nil, 0, errors.New("not a trace: it is empty")
		case errors.Is(err, io.EOF):
			return last, values, nil
		case err != nil:
			return nil, 0, fmt.Errorf("not a trace: %w", err)
		}
		last = value
	}
}
