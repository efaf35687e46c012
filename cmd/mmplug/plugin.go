package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/plugins"
)

func newPlugin(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Write, check, lock and try plugins, which run as processes of their own",
		Long: `A plugin is a program, in any language, that offers a provider, a reranker, a
graph, an embedder or a decoder over gRPC. It is the file mmplug-KIND-NAME of a
plugin directory, whose plugins.lock says which files may run, and is opened by the
URL plugin:NAME?dir=DIR.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newPluginList(std), newPluginInfo(std), newPluginVerify(std), newPluginLock(std),
		newPluginNew(std), newPluginTest(std), newPluginBench(std), newPluginRun(std),
	)
	return cmd
}

// pluginFlags say how a plugin is started.
type pluginFlags struct {
	config string
	env    []string
}

func (f *pluginFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", "", "file with the plugin's configuration, one JSON object")
	cmd.Flags().StringSliceVar(&f.env, "env", nil, "names of the environment variables that the plugin gets; it gets no others")
}

// pluginLogger shows what plugins log, from warnings up, on standard error. It
// quotes what is not printable, so that no plugin writes to the terminal itself.
func pluginLogger(std stdio) *slog.Logger {
	return slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// options are the options of a host. What the plugin logs, from warnings up,
// goes to standard error.
func (f *pluginFlags) options(cmd *cobra.Command, std stdio) (*plugins.Options, error) {
	opts := &plugins.Options{
		Env:    f.env,
		Logger: pluginLogger(std),
	}
	if err := opts.Validate(); err != nil {
		return nil, usageError{err}
	}
	if f.config != "" {
		config, err := readFile(cmd.Context(), std, f.config, io.ReadAll)
		if err != nil {
			return nil, err
		}
		opts.Config = json.RawMessage(config)
	}
	return opts, nil
}

// binaryPath is the path of a binary with a slash in it, by which it is told
// from a name.
func binaryPath(path string) string {
	if strings.ContainsAny(path, `/`+string(filepath.Separator)) {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// completeBinary offers files to the shell.
func completeBinary(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeDirectory offers directories to the shell.
func completeDirectory(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func kindsText(kinds []plugins.Kind) string {
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = string(k)
	}
	return strings.Join(texts, ", ")
}

// orDash is a cell of a table, "-" when it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}

// shortSum is a digest as a person compares it.
func shortSum(sum string) string { return fmt.Sprintf("%.12s…", sum) }
