// Package weaviatetest runs a real Weaviate server for tests and examples.
//
//	server := weaviatetest.Start(t, weaviatetest.Options{})
//	p, err := registry.OpenProvider(ctx, server.URL("Pages", "mode=hybrid"))
//
// The server is the program weaviate-server, found by the environment variable
// MMPLUG_WEAVIATE_SERVER or in PATH. Without it a test is skipped and says how
// to install it. The program listens on all interfaces, so it is started only
// where there is no other than the loopback interface, as in a network
// namespace; MMPLUG_WEAVIATE_ANY_INTERFACE=1 starts it anywhere.
//
//	unshare -n sh -c 'ip link set lo up && go test ./adapters/weaviate/...'
//
// MMPLUG_WEAVIATE_URL=weaviate://host:8080?grpc=50051 names a server that runs
// already, for tests that neither end it nor need settings of their own.
package weaviatetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The environment variables that are read.
const (
	EnvServer       = "MMPLUG_WEAVIATE_SERVER"        // path of the program weaviate-server
	EnvAnyInterface = "MMPLUG_WEAVIATE_ANY_INTERFACE" // 1 starts it beside other interfaces than loopback
	EnvURL          = "MMPLUG_WEAVIATE_URL"           // weaviate://host:port?grpc=port of a server that runs
)

// Install is the command that installs the server.
const Install = "CGO_ENABLED=0 go install github.com/weaviate/weaviate/cmd/weaviate-server@v1.35.2"

// ErrUnavailable says that no server can be started here; the error that wraps
// it says what to do.
var ErrUnavailable = errors.New("no Weaviate server")

// Options are the settings of a server. The zero value is a server without
// keys, with a data directory of its own.
type Options struct {
	// APIKeys may read and write. With none, and no ReadOnlyKeys, everybody may.
	APIKeys []string
	// ReadOnlyKeys may read.
	ReadOnlyKeys []string
	// Dir keeps the data. It is not removed. "" is a temporary directory that is
	// removed when the server is stopped for good.
	Dir string
	// Env are further environment variables of the server, as NAME=value.
	Env []string
}

// custom reports whether a server that runs already cannot stand in.
func (o Options) custom() bool {
	return len(o.APIKeys)+len(o.ReadOnlyKeys)+len(o.Env) > 0 || o.Dir != ""
}

// Server is a Weaviate server on the loopback interface. Its methods are for
// one goroutine.
type Server struct {
	// Host is host and port of the HTTP interface.
	Host string
	// GRPCPort is the port of the gRPC interface.
	GRPCPort int

	params  url.Values // further parameters of EnvURL
	program string     // "" for a server that runs already
	opts    Options
	dir     string
	ports   [6]int
	process *process
}

// startTimeout bounds how long a server may take until it is ready.
const startTimeout = 2 * time.Minute

// stopTimeout is how long a server may take to end after SIGTERM.
const stopTimeout = 30 * time.Second

// Start starts a server that ends with the test. The test is skipped when
// there is none to start, and fails when it does not get ready.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := Run(t.Context(), opts)
	if errors.Is(err, ErrUnavailable) {
		t.Skipf("SKIP: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && s.process != nil {
			t.Logf("end of the server's log:\n%s", s.Log())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// StartOwned is Start for tests that kill or restart the server: one that runs
// already is not used.
func StartOwned(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	return Start(t, opts)
}

// Run starts a server and waits until it is ready, or takes the one of EnvURL
// when opts are the zero value. The caller closes it. The error wraps
// ErrUnavailable when there is no server to start.
func Run(ctx context.Context, opts Options) (*Server, error) {
	if running := os.Getenv(EnvURL); running != "" && !opts.custom() {
		return attach(ctx, running)
	}
	program, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, opts: opts, dir: opts.Dir}
	if s.ports, err = freePorts(); err != nil {
		return nil, err
	}
	s.Host, s.GRPCPort = fmt.Sprintf("127.0.0.1:%d", s.ports[0]), s.ports[1]
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "weaviate"); err != nil {
			return nil, err
		}
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// attach takes a server that runs already.
func attach(ctx context.Context, raw string) (*Server, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "weaviate" || u.Port() == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("%s=%q is not of the form weaviate://host:8080?grpc=50051", EnvURL, raw)
	}
	s := &Server{Host: u.Host, params: u.Query()}
	if s.GRPCPort, err = strconv.Atoi(s.params.Get("grpc")); err != nil {
		return nil, fmt.Errorf("%s=%q has no port as grpc=50051", EnvURL, raw)
	}
	s.params.Del("grpc")
	if err := s.waitReady(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", EnvURL, err)
	}
	return s, nil
}

// find looks for the program and checks that it may be started here.
func find() (string, error) {
	program := os.Getenv(EnvServer)
	if program == "" {
		var err error
		if program, err = exec.LookPath("weaviate-server"); err != nil {
			return "", fmt.Errorf("%w: weaviate-server is not in PATH: run %s, or set %s=PATH or %s=weaviate://host:8080?grpc=50051",
				ErrUnavailable, Install, EnvServer, EnvURL)
		}
	} else if _, err := exec.LookPath(program); err != nil {
		return "", fmt.Errorf("%s: %w", EnvServer, err)
	}
	if os.Getenv(EnvAnyInterface) == "1" {
		return program, nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() {
			return "", fmt.Errorf("%w: weaviate-server listens on all interfaces and there is one with %v: run the tests as unshare -n sh -c 'ip link set lo up && go test …', or set %s=1",
				ErrUnavailable, ip.IP, EnvAnyInterface)
		}
	}
	return program, nil
}

// freePorts finds ports that nobody listens on.
func freePorts() (ports [6]int, err error) {
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports, err
		}
		defer func() { _ = l.Close() }() // held until all ports are found, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// Owned reports whether the server was started here, so that it can be killed
// and restarted.
func (s *Server) Owned() bool { return s.program != "" }

// URL is the location of a class for package registry, with the gRPC port and
// with further parameters such as "mode=bm25".
func (s *Server) URL(class string, params ...string) string {
	return s.URLWithout(class, append([]string{"grpc=" + strconv.Itoa(s.GRPCPort)}, params...)...)
}

// URLWithout is URL without the gRPC port.
func (s *Server) URLWithout(class string, params ...string) string {
	if more := s.params.Encode(); more != "" {
		params = append(params, more)
	}
	raw := "weaviate://" + s.Host + "/" + class
	if len(params) > 0 {
		raw += "?" + strings.Join(params, "&")
	}
	return raw
}

// Pid is the process ID of the server, 0 when it is not running or not ours.
func (s *Server) Pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// Log is the end of what the server printed.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	return s.process.log.String()
}

// environment of the server: what the caller has, without Weaviate's settings,
// and then what makes a single node that talks to nobody.
func (s *Server) environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT", "GOMEMLIMIT", "GOMAXPROCS"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	port := func(i int) string { return strconv.Itoa(s.ports[i]) }
	env = append(env,
		"PERSISTENCE_DATA_PATH="+s.dir,
		"DEFAULT_VECTORIZER_MODULE=none",
		"CLUSTER_HOSTNAME=node1",
		"CLUSTER_BIND_ADDR=127.0.0.1",
		"CLUSTER_ADVERTISE_ADDR=127.0.0.1",
		"CLUSTER_GOSSIP_BIND_PORT="+port(2),
		"CLUSTER_DATA_BIND_PORT="+port(3),
		"RAFT_PORT="+port(4),
		"RAFT_INTERNAL_RPC_PORT="+port(5),
		"RAFT_BOOTSTRAP_EXPECT=1",
		"RAFT_TIMEOUTS_MULTIPLIER=1",
		"GRPC_PORT="+port(1),
		"DISABLE_TELEMETRY=true",
		"GO_PROFILING_DISABLE=true",
		"LOG_LEVEL=warning",
	)
	if keys := append(append([]string{}, s.opts.APIKeys...), s.opts.ReadOnlyKeys...); len(keys) > 0 {
		var users, admins, readers []string
		for i := range keys {
			user := fmt.Sprintf("user%d", i)
			users = append(users, user)
			if i < len(s.opts.APIKeys) {
				admins = append(admins, user)
			} else {
				readers = append(readers, user)
			}
		}
		env = append(env,
			"AUTHENTICATION_APIKEY_ENABLED=true",
			"AUTHENTICATION_APIKEY_ALLOWED_KEYS="+strings.Join(keys, ","),
			"AUTHENTICATION_APIKEY_USERS="+strings.Join(users, ","),
			"AUTHORIZATION_ADMINLIST_ENABLED=true",
			"AUTHORIZATION_ADMINLIST_USERS="+strings.Join(admins, ","),
			"AUTHORIZATION_ADMINLIST_READONLY_USERS="+strings.Join(readers, ","),
		)
	} else {
		env = append(env, "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true")
	}
	return append(env, s.opts.Env...)
}

// Restart starts the server again, with the data and the ports it had, and
// waits until it is ready. One that is running is stopped first.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.owned("restart"); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	host, port, _ := strings.Cut(s.Host, ":")
	p, err := start(s.program, s.environment(), filepath.Clean(s.dir), "--scheme", "http", "--host", host, "--port", port)
	if err != nil {
		return err
	}
	s.process = p
	if err := s.waitReady(ctx); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

// waitReady asks until the server says that it is ready and the gRPC port is
// open.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	host, _, err := net.SplitHostPort(s.Host)
	if err != nil {
		return err
	}
	grpcAddress := net.JoinHostPort(host, strconv.Itoa(s.GRPCPort))
	for {
		err := ready(ctx, client, "http://"+s.Host+"/v1/.well-known/ready", grpcAddress)
		if err == nil {
			return nil
		}
		var ended <-chan struct{}
		if s.process != nil {
			ended = s.process.ended
		}
		select {
		case <-ended:
			return fmt.Errorf("weaviate-server ended before it was ready: %w\n%s", s.process.err, s.Log())
		case <-ctx.Done():
			return fmt.Errorf("weaviate-server at %s is not ready: %w: %w\n%s", s.Host, ctx.Err(), err, s.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, client *http.Client, readyURL, grpcAddress string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, readyURL, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", grpcAddress)
	if err != nil {
		return err
	}
	return c.Close()
}

func (s *Server) owned(what string) error {
	if s.program == "" {
		return fmt.Errorf("%w to %s: the one at %s was not started here", ErrUnavailable, what, s.Host)
	}
	return nil
}

// Stop ends the server by SIGTERM and waits for it; one that does not end is
// killed and that is an error. The data stays.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, s.Kill())
	}
	select {
	case <-p.ended:
		s.process = nil
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("weaviate-server (pid %d) did not end %v after SIGTERM", p.cmd.Process.Pid, stopTimeout), s.Kill())
	}
}

// Kill ends the server by SIGKILL (kill −9) and waits for it. The data stays.
func (s *Server) Kill() error {
	if err := s.owned("kill"); err != nil {
		return err
	}
	if s.process == nil {
		return nil
	}
	if err := s.process.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.process.ended
	s.process = nil
	return nil
}

// Close stops the server for good and removes a data directory that was made
// for it. It may be called twice.
func (s *Server) Close() error {
	if s.program == "" {
		return nil
	}
	err := s.Stop()
	if s.opts.Dir == "" && s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end bytes.Buffer
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end.Write(p)
	if extra := t.end.Len() - tailSize; extra > 0 {
		t.end.Next(extra)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end.String()
}
