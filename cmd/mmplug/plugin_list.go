package main

import (
	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins"
)

func newPluginList(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list DIR",
		Short: "List the plugins of a directory and what plugins.lock says of them",
		Long: `List the plugins of a directory by name, kind and version. They are not started;
"mmplug plugin verify" compares them with plugins.lock.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeDirectory,
		RunE: func(_ *cobra.Command, args []string) error {
			entries, err := plugins.List(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				if entries == nil {
					entries = []plugins.Entry{}
				}
				return writeJSON(std.out, map[string]any{"plugins": entries})
			}
			rows := make([][]string, len(entries))
			for i, e := range entries {
				version, sum := e.Version, ""
				if e.Locked != nil {
					version, sum = e.Locked.Version, shortSum(e.Locked.SHA256)
				}
				rows[i] = []string{e.Name, string(e.Kind), orDash(version), printable(e.File), orDash(sum)}
			}
			return table(std.out, []string{"name", "kind", "version", "file", "locked"}, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
