package main

import (
	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

func newPluginVerify(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Compare the plugins of a directory with plugins.lock; exit status 3 when they differ",
		Long: `Compare the plugins of a directory with its plugins.lock. They are not started. The
exit status is 3 when one is missing, changed, not listed or cannot run here.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeDirectory,
		RunE: func(_ *cobra.Command, args []string) error {
			findings, err := plugins.Verify(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				if findings == nil {
					findings = []mapmatched.Finding{}
				}
				err = writeJSON(std.out, map[string]any{"plugins": findings})
			} else {
				rows := make([][]string, len(findings))
				for i, f := range findings {
					rows[i] = []string{printable(f.Check), string(f.Status), printable(f.Detail)}
				}
				err = table(std.out, []string{"file", "status", "what"}, rows)
			}
			for _, f := range findings {
				if err == nil && f.Status == mapmatched.StatusFailed {
					return checkError{}
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
