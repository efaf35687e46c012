package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// versionInfo is what the command prints.
type versionInfo struct {
	Version  string         `json:"version"`
	Revision string         `json:"revision,omitempty"`
	Go       string         `json:"go"`
	Platform string         `json:"platform"`
	Formats  map[string]any `json:"formats"`
}

// toolVersion is the version of this module as the build recorded it.
func toolVersion() (version, revision string) {
	version = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}

func newVersion(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the formats it reads and writes",
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Formats: map[string]any{
				"conversation": policy.ConversationSchema,
				"policy":       policy.SchemaV1,
				"index":        fmt.Sprintf("%s/%d", embedded.Format, embedded.Version),
				"score_model":  mapmatched.ScoreModel,
				"session":      mapmatched.SessionSchema,
				"trace":        mapmatched.TraceSchema,
			}}
			v.Version, v.Revision = toolVersion()
			if asJSON {
				return writeJSON(std.out, v)
			}
			if v.Revision != "" {
				v.Version += " (" + v.Revision + ")"
			}
			_, err := fmt.Fprintf(std.out, "mmplug %s\n%s %s\nindex %s, conversation %s, policy %s, session %s, trace %s, score model %s\n", v.Version, v.Go, v.Platform,
				v.Formats["index"], v.Formats["conversation"], v.Formats["policy"], v.Formats["session"], v.Formats["trace"], v.Formats["score_model"])
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
