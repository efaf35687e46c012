package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins"
)

func newPluginInfo(std stdio) *cobra.Command {
	var flags pluginFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info BINARY",
		Short: "Start a plugin and print what it says of itself",
		Long: `Start a plugin, without looking at plugins.lock, and print what it says of itself:
name, version, kinds, capabilities and the schema of its configuration. One whose
configuration requires something needs --config.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeBinary,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options(cmd, std)
			if err != nil {
				return err
			}
			info, err := plugins.Inspect(cmd.Context(), binaryPath(args[0]), opts)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, info)
			}
			return printInfo(std.out, info)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printInfo(w io.Writer, info plugins.Info) error {
	capabilities := make([]string, len(info.Capabilities))
	for i, c := range info.Capabilities {
		capabilities[i] = string(c)
	}
	var b strings.Builder
	for _, line := range [][2]string{
		{"name", info.Name},
		{"version", info.Version},
		{"what", orDash(info.Description)},
		{"kinds", kindsText(info.Kinds)},
		{"protocol", fmt.Sprintf("%d.%d", info.Protocol, info.ProtocolMinor)},
		{"capabilities", orDash(strings.Join(capabilities, ", "))},
	} {
		fmt.Fprintf(&b, "%-14s%s\n", line[0]+":", printable(line[1]))
	}
	if len(info.Schema) > 0 {
		var schema bytes.Buffer
		if err := json.Indent(&schema, info.Schema, "", "  "); err != nil {
			return err
		}
		b.WriteString("configuration:\n")
		for line := range strings.Lines(schema.String()) {
			b.WriteString("  " + printable(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
