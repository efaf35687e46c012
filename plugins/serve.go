package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The environment of a plugin.
const (
	cookieKey   = "MMPLUG_PLUGIN"
	cookieValue = "mapmatched-retrieval"

	envVersions   = "PLUGIN_PROTOCOL_VERSIONS"
	envClientCert = "PLUGIN_CLIENT_CERT"
	envSocketDir  = "PLUGIN_UNIX_SOCKET_DIR"
	envLogLevel   = "MMPLUG_LOG_LEVEL"
	envWatchStdin = "MMPLUG_WATCH_STDIN"
)

// Services is what a plugin offers; nil fields it does not. Optional
// capabilities of package mapmatched are found by type assertion, and what
// implements io.Closer is closed at the end.
type Services struct {
	Provider mapmatched.CandidateProvider
	Reranker mapmatched.Reranker
	Graph    mapmatched.CorpusGraph
	Embedder mapmatched.Embedder
	Decoder  mapmatched.Decoder
}

// Plugin describes a plugin to [Serve].
type Plugin struct {
	// Name of a-z, 0-9 and single '-', such as "overlap". Required.
	Name string
	// Version such as "1.2.0". Required.
	Version string
	// Description is one line for people.
	Description string

	// Services is what the plugin offers. With Configure it may be empty.
	Services Services

	// Schema is the JSON Schema of the configuration, nil for a plugin that
	// takes none. [ParseSchema] says which keywords count.
	Schema json.RawMessage
	// Configure makes the services from a configuration that fits Schema. It
	// is called with {} when the host has none and the schema requires
	// nothing.
	Configure func(ctx context.Context, config json.RawMessage) (Services, error)
	// Kinds is what the plugin will offer once it is configured. Only needed
	// with Configure.
	Kinds []Kind

	// LoadCorpus, unless nil, makes a provider that holds just these chunks,
	// with their vectors. The conformance suite then checks the answers too.
	LoadCorpus func(ctx context.Context, chunks []mapmatched.Chunk, vectors [][]float32) (mapmatched.CandidateProvider, error)
	// LoadGraph, unless nil, makes a graph of just these chunks and edges.
	LoadGraph func(ctx context.Context, nodes []string, edges []mapmatched.Edge, maximumDistance float64, directed bool) (mapmatched.CorpusGraph, error)
}

// Validate reports every fault of the description.
func (p Plugin) Validate() error {
	var faults []error
	info := (&server{plugin: p, services: p.Services}).info()
	if err := info.check(); err != nil {
		faults = append(faults, err)
	}
	if p.Configure != nil && len(p.Schema) == 0 {
		faults = append(faults, errors.New("Configure is set but Schema is not: hosts could not tell what to send"))
	}
	if p.Configure == nil && len(p.Schema) > 0 {
		faults = append(faults, errors.New("Schema is set but Configure is not: a configuration would have no effect"))
	}
	for _, k := range p.Kinds {
		if k != KindProvider && k != KindReranker && k != KindGraph && k != KindEmbedder && k != KindDecoder {
			faults = append(faults, fmt.Errorf("kind %q is not one of %s", k, join(Kinds())))
		}
	}
	return errors.Join(faults...)
}

// DecodeConfig reads a configuration into a T: unknown members are errors. It
// is meant for Plugin.Configure.
func DecodeConfig[T any](config json.RawMessage) (T, error) {
	var t T
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	err := d.Decode(&t)
	if err != nil {
		err = fmt.Errorf("configuration: %w", err)
	}
	return t, err
}

// Serve runs a plugin: it is all that its main function has to call. It ends
// the process with status 1 when the plugin is at fault or was not started by a
// host, and returns when the host is done with it.
//
// Serve makes a logger the default of package slog whose records arrive in the
// host's log. What is printed to os.Stdout and os.Stderr arrives there as
// records of level debug. A panic in a call fails that call and no other; one
// in a goroutine of the plugin's own ends the process.
func Serve(p Plugin) {
	stderr := os.Stderr // go-plugin replaces it
	if err := p.Validate(); err != nil {
		say(stderr, "plugin %s: %s\n", p.Name, oneLine(err.Error()))
		os.Exit(1)
	}
	if os.Getenv(cookieKey) != cookieValue {
		say(stderr, "%s %s is a plugin of mmplug, which starts it by itself. To try it: mmplug plugin test %s\n", p.Name, p.Version, os.Args[0])
		os.Exit(1)
	}
	if versions := os.Getenv(envVersions); !speaks(versions) {
		say(stderr, "%s %s speaks protocol version %d, the host %s\n", p.Name, p.Version, protocolVersion, versions)
	}
	slog.SetDefault(slog.New(newLogHandler(stderr, logLevel(os.Getenv(envLogLevel)))))
	if os.Getenv(envWatchStdin) != "" {
		go exitWithHost(os.Stdin)
	}
	s := newServer(p)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocolVersion: {pluginName: &grpcPlugin{server: s}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, serverOptions()...)...)
		},
		Logger: quietLogger(stderr),
	})
	s.close()
}

// say writes to stderr. Where that fails there is nobody left to tell.
func say(stderr io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(stderr, format, args...)
}

// exitWithHost ends the process when the host does: stdin is a pipe that only
// the host holds open.
func exitWithHost(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin) // silent until the host is gone
	os.Exit(0)
}

// speaks reports whether a list of versions has ours.
func speaks(versions string) bool {
	for v := range strings.SplitSeq(versions, ",") {
		if n, err := strconv.Atoi(v); err == nil && n == protocolVersion {
			return true
		}
	}
	return false
}

// pluginName is the name under which go-plugin knows the services: there is
// one set, which has them all.
const pluginName = "mmplug"

// grpcPlugin joins go-plugin and the services.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *server // nil in the host
}

// GRPCServer implements plugin.GRPCPlugin.
func (p *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	p.server.register(s)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (p *grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
