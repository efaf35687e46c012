package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/policy"
)

func newPolicyShadowReport(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "shadow-report LOG…",
		Short: "Sum up what ran in shadow",
		Long: `Sum up shadow logs, which "mmplug ask" and "mmplug chat" write with --shadow-log:
for each part of a policy, and for a whole policy beside the one in force, how
many turns it saw, on how many it would have decided otherwise, and how its
decisions are spread. The older files of a log (LOG.1, LOG.2, …) are read too.`,
		Example: "  mmplug policy shadow-report shadow.jsonl",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := shadowReport(args)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, report)
			}
			return report.WriteText(std.out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shadowReport reads logs, each with its older files before it.
func shadowReport(logs []string) (*policy.ShadowReport, error) {
	var sources []io.Reader
	for _, log := range logs {
		files := []string{log}
		for n := 1; ; n++ {
			older := fmt.Sprintf("%s.%d", log, n)
			if _, err := os.Stat(older); errors.Is(err, fs.ErrNotExist) {
				break
			}
			files = append([]string{older}, files...)
		}
		for _, path := range files {
			f, err := os.Open(path)
			if err != nil {
				return nil, cannot("read", path, err)
			}
			defer f.Close() //nolint:errcheck // only read; all of them until the end
			sources = append(sources, f)
		}
	}
	report, err := policy.NewShadowReport(sources...)
	if err != nil {
		return nil, err
	}
	if report.Skipped > 0 && len(report.Rows) == 0 {
		return nil, fmt.Errorf("%s: no line of it is a shadow record; give the file that --shadow-log wrote", logs[0])
	}
	return report, nil
}
