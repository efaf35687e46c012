package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// Options say how a plugin is run. The zero value is ready for use with a
// path; a name needs Dir and Kind.
type Options struct {
	// Dir is the plugin directory. "" is the directory of the binary when the
	// plugin is given as a path.
	Dir string
	// Kind tells apart plugins of one name. "" takes the only one.
	Kind Kind
	// Config is the configuration, one JSON object; nil for none.
	Config json.RawMessage

	// AllowUnlocked starts a plugin that plugins.lock does not list. It is
	// meant for development. One that is listed still has to match.
	AllowUnlocked bool
	// Pins are SHA-256 digests in hexadecimal by plugin name, as a policy has
	// them. When there are any, only a file with one of these digests is
	// started, and one that is named there, by its file or by itself, must have
	// the digest of that name, whatever plugins.lock says. Pins of the context
	// ([WithPins]) count as well.
	Pins map[string]string

	// Env names the variables of the environment that the plugin gets. None
	// without it.
	Env []string
	// TempDir is where the run directory is made, short enough for a socket;
	// "" is os.TempDir().
	TempDir string
	// Logger gets the plugin's log: with the attribute plugin, and with the
	// plugin's own attributes in the group attrs. What a plugin writes is passed
	// on as it is: a handler for a terminal has to escape it, as
	// slog.TextHandler does. nil is the logger of the context ([WithLogger]), or
	// slog.Default().
	Logger *slog.Logger

	StartTimeout time.Duration // time to start, configuration included; 0 means 15 s
	CallTimeout  time.Duration // time of a call beside its context; 0 means 1 min, negative none
	CloseTimeout time.Duration // time to end by itself before it is killed; 0 means 2 s

	MaxInFlight  int           // calls on their way at once, more wait; 0 means 256
	MaxRestarts  int           // starts in a row without one good call, after which it stays down; 0 means 5, negative none
	RestartDelay time.Duration // before the second start in a row, doubled for each further one up to 50 times as much; 0 means 100 ms
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.StartTimeout = orDefault(out.StartTimeout, 15*time.Second)
	out.CallTimeout = orDefault(out.CallTimeout, time.Minute)
	out.CloseTimeout = orDefault(out.CloseTimeout, 2*time.Second)
	out.RestartDelay = orDefault(out.RestartDelay, 100*time.Millisecond)
	out.MaxInFlight = orDefault(out.MaxInFlight, 256)
	out.MaxRestarts = orDefault(out.MaxRestarts, 5)
	if out.TempDir == "" {
		out.TempDir = os.TempDir()
	}
	if out.Logger == nil {
		out.Logger = slog.Default()
	}
	return out
}

func orDefault[T int | time.Duration](v, byDefault T) T {
	if v == 0 {
		return byDefault
	}
	return v
}

// Validate reports every fault of the options.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Kind != "" && !slices.Contains(Kinds(), o.Kind) {
		fault("Kind is %q, not one of %s", o.Kind, join(Kinds()))
	}
	for _, name := range o.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			fault("Env has %q, which is no name of a variable", name)
		}
		if strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "MMPLUG_") {
			fault("Env has %s, which the host sets itself", name)
		}
	}
	faults = append(faults, validatePins(o.Pins)...)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"StartTimeout", o.StartTimeout}, {"CloseTimeout", o.CloseTimeout}, {"RestartDelay", o.RestartDelay}} {
		if d.value < 0 {
			fault("%s is %v, below 0", d.name, d.value)
		}
	}
	if o.MaxInFlight < 0 {
		fault("MaxInFlight is %d, below 0", o.MaxInFlight)
	}
	return errors.Join(faults...)
}

// Host runs one plugin and keeps it running. It is safe for concurrent use.
type Host struct {
	name    string // for errors and the log
	opts    Options
	start   func(ctx context.Context) (*process, error)
	accept  func(Info) error // looks at what a new process says of itself; nil accepts all
	inspect bool             // without a configuration, do not configure
	slots   chan struct{}    // one for each call on its way

	ctx    context.Context // done when the host is closed
	cancel context.CancelFunc
	info   atomic.Pointer[Info]

	mu       sync.Mutex
	process  *process // nil between two processes
	repair   *repair  // the restart under way, or nil
	failures int      // starts in a row since the last good call
	starts   int      // processes started so far
	lastErr  error    // why the last process ended or did not start
	closed   bool
	closing  sync.WaitGroup // repairs
	gone     chan struct{}  // closed when Close is done
}

// process is one running plugin.
type process struct {
	conn    *grpc.ClientConn
	done    <-chan struct{}           // closed when it has ended and its output is read
	stop    func(grace time.Duration) // ends it, returns when it is gone
	ended   func() string             // how it ended and what it last wrote, once done
	pid     int                       // 0 in this process
	suspect atomic.Bool               // a call had no answer in time
	broken  atomic.Bool               // its connection failed
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// repair is a restart under way.
type repair struct {
	done chan struct{}
	err  error // valid when done
}

// Open starts a plugin and asks what it is. nameOrPath is the name of a
// plugin in the plugin directory, with @VERSION for another version than the
// newest, or the path of a binary when it has a slash. ctx governs the start
// only. Every error is a *mapmatched.Error of operation "open".
func Open(ctx context.Context, nameOrPath string, opts *Options) (*Host, error) {
	return open(ctx, nameOrPath, opts, false)
}

// open opens a plugin. To inspect it means not to look at plugins.lock and
// pins, and not to configure it when there is no configuration.
func open(ctx context.Context, nameOrPath string, opts *Options, inspect bool) (*Host, error) {
	const op = "open"
	shown := filepath.Base(nameOrPath)
	if err := opts.Validate(); err != nil {
		return nil, failAs(mapmatched.KindInvalid, op, shown, err)
	}
	pins := pinsOf(ctx)
	for _, list := range pins {
		if faults := validatePins(list); faults != nil {
			return nil, failAs(mapmatched.KindInvalid, op, shown, errors.Join(faults...))
		}
	}
	o := opts.withDefaults()
	if log, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok && (opts == nil || opts.Logger == nil) {
		o.Logger = log
	}
	if len(o.Pins) > 0 {
		pins = append(pins[:len(pins):len(pins)], o.Pins)
	}
	file, err := locate(nameOrPath, &o)
	if err != nil {
		return nil, fail(op, shown, err)
	}
	h := newHost(file.Name, o)
	h.inspect = inspect
	var sum string // of the file, as of the last start; only known where there are pins
	h.start = func(ctx context.Context) (*process, error) {
		if !inspect {
			var err error
			if sum, err = file.trusted(pins, o.AllowUnlocked); err != nil {
				return nil, err
			}
		}
		return startBinary(ctx, file.Path, h)
	}
	if !inspect {
		// The file may go by another name than the plugin itself.
		h.accept = func(info Info) error { return checkPins(pins, file.Path, sum, info.Name) }
	}
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	if file.Kind != "" && !h.Info().Serves(file.Kind) {
		err := fmt.Errorf("the file is named as %s, but the plugin serves %s: rename %s", article(file.Kind), join(h.Info().Kinds), file.Path)
		return nil, errors.Join(failAs(mapmatched.KindInvalid, op, h.name, err), h.Close())
	}
	return h, nil
}

func newHost(name string, o Options) *Host {
	h := &Host{name: name, opts: o, slots: make(chan struct{}, o.MaxInFlight), gone: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.opts.Logger = o.Logger.With("plugin", name)
	return h
}

// open starts the first process.
func (h *Host) open(ctx context.Context) error {
	p, err := h.launch(ctx)
	if err != nil {
		h.cancel()
		return fail("open", h.name, err)
	}
	h.process = p
	return nil
}

// launch starts a process, asks what it is and configures it.
func (h *Host) launch(ctx context.Context) (*process, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	stop := context.AfterFunc(h.ctx, cancel) // Close ends a start
	defer stop()
	p, err := h.start(ctx)
	if err == nil {
		h.mu.Lock()
		h.starts++
		h.mu.Unlock()
		if err = h.introduce(ctx, p); err != nil {
			quote := p.pid != 0 && mapmatched.KindOf(err) != mapmatched.KindInvalid && !errors.Is(err, ErrChecksum)
			if quote {
				h.lost(p) // one that crashes has the time to end by itself
			}
			p.stop(0)
			if quote {
				err = fmt.Errorf("%w; the plugin %s", err, p.ended())
			}
		}
	}
	switch {
	case err == nil:
		return p, nil
	case outer.Err() != nil && !errors.Is(err, outer.Err()):
		return nil, fmt.Errorf("the start was given up: %w: %w", outer.Err(), err)
	case outer.Err() == nil && ctx.Err() != nil && h.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, failAs(mapmatched.KindDeadline, "open", h.name, fmt.Errorf("it was not ready after %v: %w; raise StartTimeout if it needs longer", h.opts.StartTimeout, err))
	}
	return nil, err
}

// introduce asks a new process what it is and configures it.
func (h *Host) introduce(ctx context.Context, p *process) error {
	info, err := askInfo(ctx, p.conn)
	if err != nil {
		return err
	}
	if h.accept != nil {
		if err := h.accept(info); err != nil {
			return err
		}
	}
	config := h.opts.Config
	switch {
	case h.inspect && len(config) == 0:
	case len(info.Schema) == 0 && len(config) > 0:
		return failAs(mapmatched.KindInvalid, "configure", h.name, errors.New("there is a configuration, but the plugin takes none: leave it out"))
	case len(info.Schema) > 0:
		if len(config) == 0 {
			config = json.RawMessage("{}")
		}
		schema, err := parseSchema(info.Schema)
		if err == nil {
			err = schema.check(config)
		}
		if err != nil {
			return failAs(mapmatched.KindInvalid, "configure", h.name, err)
		}
		if _, err := wire.NewBaseClient(p.conn).Configure(ctx, &wire.ConfigureRequest{Config: config}); err != nil {
			kind, _, cause := fromStatus(err)
			return failAs(kind, "configure", h.name, cause)
		}
		if info, err = askInfo(ctx, p.conn); err != nil {
			return err
		}
	}
	h.info.Store(&info)
	return nil
}

// askInfo calls Info.
func askInfo(ctx context.Context, conn grpc.ClientConnInterface) (Info, error) {
	r, err := wire.NewBaseClient(conn).Info(ctx, &wire.InfoRequest{ProtocolMinor: protocolMinor})
	if err != nil {
		_, _, cause := fromStatus(err)
		return Info{}, fmt.Errorf("info: %w", cause)
	}
	info := Info{Name: r.GetName(), Version: r.GetVersion(), Description: r.GetDescription(), Protocol: protocolVersion,
		ProtocolMinor: int(r.GetProtocolMinor()), Schema: r.GetConfigSchema()}
	for _, k := range r.GetKinds() {
		info.Kinds = append(info.Kinds, Kind(k))
	}
	for _, c := range r.GetCapabilities() {
		info.Capabilities = append(info.Capabilities, Capability(c))
	}
	if err := info.check(); err != nil {
		return Info{}, err
	}
	return info, nil
}

// describe asks for Info again.
func (h *Host) describe(ctx context.Context) error {
	return h.do(ctx, "info", func(ctx context.Context, conn grpc.ClientConnInterface) error {
		info, err := askInfo(ctx, conn)
		if err == nil {
			h.info.Store(&info)
		}
		return err
	})
}

// Info is what the plugin says of itself, as of its last start.
func (h *Host) Info() Info { return *h.info.Load() }

// Pid is the process ID of the plugin, 0 while it is down or when it runs in
// this process.
func (h *Host) Pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil || h.process.exited() {
		return 0
	}
	return h.process.pid
}

// Starts is how often the plugin was started so far.
func (h *Host) Starts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starts
}

// serves fails when the plugin is not of a kind.
func (h *Host) serves(k Kind) error {
	if info := h.Info(); !info.Serves(k) {
		return failAs(mapmatched.KindInvalid, "open", h.name, fmt.Errorf("the plugin is no %s: it serves %s", k, join(info.Kinds)))
	}
	return nil
}

// Health reports whether the plugin can answer now. It starts a plugin that is
// down.
func (h *Host) Health(ctx context.Context) error {
	_, err := call(ctx, h, "health", wire.NewBaseClient, wire.BaseClient.Health, &wire.HealthRequest{},
		func(*wire.HealthResponse) (struct{}, error) { return struct{}{}, nil })
	return err
}

// Close ends the plugin: it is asked to, and killed with everything it started
// when it has not ended after CloseTimeout. Calls on their way fail with
// mapmatched.ErrClosed. Close may be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		<-h.gone
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.closing.Wait()
	h.mu.Lock()
	p := h.process
	h.mu.Unlock()
	if p != nil {
		p.stop(h.opts.CloseTimeout)
	}
	close(h.gone)
	return nil
}

// fail is the error of an operation.
func (h *Host) fail(op string, err error) error { return fail(op, h.name, err) }

func (h *Host) failAs(kind mapmatched.Kind, op string, err error) error {
	return failAs(kind, op, h.name, err)
}
