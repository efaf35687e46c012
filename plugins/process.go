package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
)

// dialOptions are the options of every connection to a plugin. Idle
// connections stay: the socket is removed and could not be dialled again.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(windowSize), grpc.WithInitialConnWindowSize(windowSize),
		grpc.WithIdleTimeout(0),
	}
}

// startBinary starts a plugin's file and connects to it.
func startBinary(ctx context.Context, path string, h *Host) (*process, error) {
	if err := checkExecutable(path); err != nil {
		return nil, err
	}
	dir, err := newRunDir(h.opts.TempDir, h.opts.Logger)
	if err != nil {
		return nil, err
	}
	certificate, tlsConfig, err := newCertificate()
	if err != nil {
		dir.remove()
		return nil, err
	}
	log := hostLog{h.opts.Logger}
	cmd := exec.Command(path)
	cmd.Dir = dir.path
	cmd.Env = environment(h.opts.Env)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir.path, envWatchStdin+"=1", envLogLevel+"="+levelName(log.level()), envClientCert+"="+certificate)
	program := newRunner(cmd, log)
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocolVersion: {pluginName: &grpcPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		TLSConfig:        tlsConfig,
		StartTimeout:     h.opts.StartTimeout + time.Minute, // ctx ends it before
		Logger:           hclog.NewNullLogger(),
		SyncStdout:       &lineWriter{log: log, source: "stdout"},
		SyncStderr:       &lineWriter{log: log, source: "stderr"},
		GRPCDialOptions:  dialOptions(),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir.path},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			// The last value of a variable counts: the socket goes into the run
			// directory itself, whose path is shorter.
			cmd.Env = append(cmd.Env, spec.Env...)
			cmd.Env = append(cmd.Env, envSocketDir+"="+dir.path)
			return program, nil
		},
	})
	stop := func(grace time.Duration) {
		stopProgram(client, program, grace)
		dir.remove()
	}
	defer context.AfterFunc(ctx, program.kill)() // a start that takes too long
	conn, address, err := connect(client)
	if err != nil {
		if program.pid() == 0 {
			dir.remove()
			return nil, cannotStart(path, err)
		}
		ctxErr := ctx.Err()
		stop(0)
		if ctxErr != nil {
			return nil, fmt.Errorf("%w: %w", program.explain(err), ctxErr)
		}
		return nil, program.explain(err)
	}
	dir.removeSocket(address)
	return &process{conn: conn, done: program.done, stop: stop, ended: program.ended, pid: program.pid()}, nil
}

// environment takes the named variables of the host, and what programs need to
// start at all.
func environment(names []string) []string {
	var env []string
	for _, name := range append(systemVariables(), names...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// connect waits for the handshake and connects. go-plugin panics on lines of
// stderr that it does not expect, which it is not shown.
func connect(client *plugin.Client) (*grpc.ClientConn, string, error) {
	address, err := client.Start()
	if err != nil {
		return nil, "", err
	}
	protocol, err := client.Client()
	if err == nil {
		err = protocol.Ping()
	}
	if err != nil {
		return nil, "", fmt.Errorf("no connection to it: %w", err)
	}
	raw, err := protocol.Dispense(pluginName)
	if err != nil {
		return nil, "", err
	}
	if unix, ok := address.(*net.UnixAddr); ok {
		return raw.(*grpc.ClientConn), unix.Name, nil
	}
	return raw.(*grpc.ClientConn), "", nil
}

// stopProgram asks a plugin to end and kills it after the grace, or at once
// without one. It returns when it is gone: go-plugin waits for as long as the
// process lives, and its own attempt to kill it has no effect.
func stopProgram(client *plugin.Client, program *programRunner, grace time.Duration) {
	if grace <= 0 {
		program.kill()
	}
	timer := time.AfterFunc(grace, program.kill)
	defer timer.Stop()
	client.Kill()
	<-program.done
}

// cannotStart words why the system does not run a file.
func cannotStart(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s cannot be run: the interpreter or loader that it names is not there: %w", path, err)
	}
	if strings.Contains(err.Error(), "exec format error") {
		return failAs(mapmatched.KindInvalid, "open", "", fmt.Errorf("%s cannot be run: it is no program for this machine: %w", path, err))
	}
	return fmt.Errorf("%s cannot be run: %w", path, err)
}
