// Command 10_plugin_provider decodes a conversation with a provider that runs
// in a process of its own. The plugin is the program in the directory provider:
// it is built here, put in a plugin directory and locked by its SHA-256.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "mmplug-provider-keywords"),
		"github.com/mapmatched/mmplug/examples/10_plugin_provider/provider")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	if _, err := plugins.WriteLock(ctx, dir, nil); err != nil {
		return err
	}

	host, err := plugins.Open(ctx, "keywords", &plugins.Options{Dir: dir, Kind: plugins.KindProvider})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	info := host.Info()
	if _, err := fmt.Fprintf(w, "%s %s, in a process of its own: %t\n", info.Name, info.Version, host.Pid() != os.Getpid()); err != nil {
		return err
	}
	provider, err := host.Provider()
	if err != nil {
		return err
	}
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens/lifetime", To: "tokens/renew", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "invites/lifetime", To: "invites/renew", Weight: 1, Type: mapmatched.EdgeNext},
	}, nil)
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(provider, graph, nil)
	if err != nil {
		return err
	}
	for _, question := range []string{"How long is a token valid?", "How to renew it?"} {
		alone, err := provider.Candidates(ctx, mapmatched.Query{Text: question}, 1)
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, mapmatched.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  alone:   %s\n  decoded: %s\n", question, alone[0].ChunkID, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}
