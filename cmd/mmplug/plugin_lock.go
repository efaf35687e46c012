package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins"
)

func newPluginLock(std stdio) *cobra.Command {
	var flags pluginFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lock DIR",
		Short: "Trust the plugins that are in a directory now: write plugins.lock",
		Long: `Start every plugin of a directory, ask what it is, and write plugins.lock with the
version and SHA-256 of each. From then on another file is refused. Look at what is
there first: to lock is to trust it.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options(cmd, std)
			if err != nil {
				return err
			}
			lock, err := plugins.WriteLock(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, lock)
			}
			rows := make([][]string, len(lock.Plugins))
			for i, e := range lock.Plugins {
				rows[i] = []string{e.Name, string(e.Kind), e.Version, e.OS + "/" + e.Arch, printable(e.File), shortSum(e.SHA256)}
			}
			if err := table(std.out, []string{"name", "kind", "version", "platform", "file", "sha256"}, rows); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "%s: %s\n", filepath.Join(args[0], plugins.LockFile), count(len(lock.Plugins), "plugin", "plugins"))
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
