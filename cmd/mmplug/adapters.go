package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func newAdapters(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "adapters",
		Short: "List the stores, graphs, embedders and rerankers that a URL can open",
		RunE: func(*cobra.Command, []string) error {
			entries := registry.Default().Entries()
			if asJSON {
				list := make([]map[string]any, len(entries))
				for i, e := range entries {
					parameters := make([]map[string]string, len(e.Doc.Parameters))
					for j, p := range e.Doc.Parameters {
						parameters[j] = map[string]string{"name": p.Name, "usage": p.Usage, "default": p.Default}
					}
					list[i] = map[string]any{"scheme": e.Scheme, "kind": e.Kind, "summary": e.Doc.Summary, "example": e.Doc.Example, "parameters": parameters}
				}
				return writeJSON(std.out, map[string]any{"adapters": list})
			}
			var rows [][]string
			for _, e := range entries {
				rows = append(rows, []string{e.Scheme + ":", string(e.Kind), e.Doc.Summary})
			}
			if err := table(std.out, []string{"scheme", "kind", "what"}, rows); err != nil {
				return err
			}
			for _, e := range entries {
				if len(e.Doc.Parameters) == 0 {
					continue
				}
				var b strings.Builder
				fmt.Fprintf(&b, "\n%s %s, for example %s\n", e.Scheme+":", e.Kind, e.Doc.Example)
				for _, p := range e.Doc.Parameters {
					fmt.Fprintf(&b, "  %-16s %s", p.Name, p.Usage)
					if p.Default != "" {
						fmt.Fprintf(&b, " (default %s)", p.Default)
					}
					b.WriteByte('\n')
				}
				if _, err := fmt.Fprint(std.out, b.String()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
