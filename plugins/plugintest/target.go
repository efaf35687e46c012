package plugintest

import (
	"context"
	"log/slog"

	"github.com/mapmatched/mmplug/plugins"
)

// Target is a plugin under test.
type Target struct {
	// Name is shown in the report.
	Name string

	open   func(ctx context.Context) (*plugins.Host, error) // nil for a plugin that is called directly
	direct plugins.Plugin
}

// Binary is the plugin at a path, in any language. It runs as a process,
// whether plugins.lock lists it or not. opts may be nil; it says, for example,
// which configuration and environment the plugin needs. Without a logger the
// plugin's log is dropped.
func Binary(path string, opts *plugins.Options) Target {
	o := quiet(opts)
	o.AllowUnlocked = true
	return Target{Name: path, open: func(ctx context.Context) (*plugins.Host, error) { return plugins.Open(ctx, path, o) }}
}

// InMemory is a plugin of this process, called over gRPC in memory.
func InMemory(p plugins.Plugin, opts *plugins.Options) Target {
	o := quiet(opts)
	return Target{Name: p.Name + " (gRPC in memory)", open: func(ctx context.Context) (*plugins.Host, error) { return plugins.Loopback(ctx, p, o) }}
}

// Direct is a plugin of this process, called without gRPC: the checks of the
// protocol are skipped.
func Direct(p plugins.Plugin) Target {
	return Target{Name: p.Name + " (direct)", direct: p}
}

func quiet(opts *plugins.Options) *plugins.Options {
	var o plugins.Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &o
}
