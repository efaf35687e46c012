//go:build unix

// Command cmd is the plugin of the tests as a binary. The end of its file name
// says how it misbehaves at its start; without such an end it is a good plugin.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/testplugin"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name[strings.LastIndexByte(name, '-')+1:] {
	case "garbage":
		fmt.Println("Loading model weights...")
	case "dies":
		fmt.Fprintln(os.Stderr, "cannot open the index: it is locked")
		os.Exit(7)
	case "silent":
		time.Sleep(time.Hour)
	case "stopped":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "closed":
		_ = os.Stdout.Close()
		time.Sleep(time.Hour)
	case "mute": // serves nothing, not even what it is
		raw(1, "MMPLUG_PLUGIN", "mapmatched-retrieval")
		return
	case "slowend":
		defer func() {
			time.Sleep(2500 * time.Millisecond) // longer than go-plugin waits by itself
			slog.Warn("everything is written")
		}()
	case "chatty":
		fmt.Fprintln(os.Stderr, strings.Repeat("z", 1<<20))
	case "newer":
		raw(2, "MMPLUG_PLUGIN", "mapmatched-retrieval")
	case "older":
		raw(0, "MMPLUG_PLUGIN", "mapmatched-retrieval")
	case "foreign":
		raw(1, "OTHER_PROGRAM", "abc")
	case "netrpc":
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "MMPLUG_PLUGIN", MagicCookieValue: "mapmatched-retrieval"},
			VersionedPlugins: map[int]plugin.PluginSet{1: {"x": oldPlugin{}}},
		})
		return
	}
	p := testplugin.Plugin()
	if strings.HasSuffix(name, "-strict") {
		p.Name += "-strict"
		p.Schema = []byte(`{"type": "object", "required": ["dimension"], "properties": {"dimension": {"type": "integer"}}}`)
	}
	plugins.Serve(p)
}

// raw serves nothing under another version or cookie.
func raw(version int, cookie, value string) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: cookie, MagicCookieValue: value},
		VersionedPlugins: map[int]plugin.PluginSet{version: {"x": &emptyPlugin{}}},
		GRPCServer:       func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(o...) },
	})
}

type emptyPlugin struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements plugin.GRPCPlugin.
func (*emptyPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient implements plugin.GRPCPlugin.
func (*emptyPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

type oldPlugin struct{}

// Server implements plugin.Plugin.
func (oldPlugin) Server(*plugin.MuxBroker) (any, error) { return struct{}{}, nil }

// Client implements plugin.Plugin.
func (oldPlugin) Client(*plugin.MuxBroker, *rpc.Client) (any, error) { return nil, nil }
