package plugins

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Loopback serves a plugin inside this process and returns a host that calls
// it over gRPC in memory, as it would another process: to test a plugin without
// building it. Options that are about files and processes have no effect.
func Loopback(ctx context.Context, p Plugin, opts *Options) (*Host, error) {
	if err := p.Validate(); err != nil {
		return nil, failAs(mapmatched.KindInvalid, "open", p.Name, err)
	}
	if err := opts.Validate(); err != nil {
		return nil, failAs(mapmatched.KindInvalid, "open", p.Name, err)
	}
	h := newHost(p.Name, opts.withDefaults())
	h.start = func(context.Context) (*process, error) { return startLoopback(p) }
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

func startLoopback(p Plugin) (*process, error) {
	s := newServer(p)
	listener := bufconn.Listen(1 << 20)
	service := grpc.NewServer(serverOptions()...)
	s.register(service)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = service.Serve(listener) // nil after Stop
		s.close()
	}()
	options := append(dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:loopback", options...)
	if err != nil {
		service.Stop()
		<-done
		return nil, err
	}
	stop := func(time.Duration) {
		_ = conn.Close() // calls on their way fail
		service.Stop()
		<-done
	}
	return &process{conn: conn, done: done, stop: stop, ended: func() string { return "ended" }}, nil
}
