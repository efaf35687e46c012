package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
)

const traceFiles = `FILE is a trace, what decode or ask printed with --json (the last turn's trace
is taken), or a session file of ask or chat; "-" is standard input.`

func newTrace(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Show, draw or compare traces",
		Long:  "Show, draw or compare traces.\n\n" + traceFiles,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
		RunE: func(_ *cobra.Command, args []string) error {
			trace, err := readFile(std, args[0], readAnyTrace)
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
		RunE: func(_ *cobra.Command, args []string) error {
			trace, err := readFile(std, args[0], readAnyTrace)
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
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "-" && args[1] == "-" {
				return usageError{errors.New("only one of the two traces can be standard input")}
			}
			a, err := readFile(std, args[0], readAnyTrace)
			if err != nil {
				return err
			}
			b, err := readFile(std, args[1], readAnyTrace)
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
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var head struct {
		Schema string            `json:"schema"`
		Steps  json.RawMessage   `json:"steps"`
		Turns  []json.RawMessage `json:"turns"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("not a trace: %w", err)
	}
	if head.Schema == mapmatched.SessionSchema {
		return mapmatched.ReadSessionTrace(bytes.NewReader(raw))
	}
	if head.Steps == nil && len(head.Turns) > 0 {
		var last struct {
			Trace json.RawMessage `json:"trace"`
		}
		if err := json.Unmarshal(head.Turns[len(head.Turns)-1], &last); err == nil && last.Trace != nil {
			raw = last.Trace
		}
	}
	return mapmatched.ReadTrace(bytes.NewReader(raw))
}
