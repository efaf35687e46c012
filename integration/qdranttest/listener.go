package qdranttest

import (
	"net"
	"sync"
)

// listener remembers its connections by the address of the client, so that one
// of them or all can be reset.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns map[string]*conn
}

type conn struct {
	net.Conn
	from *listener
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, conns: map[string]*conn{}}
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, from: l}
	l.mu.Lock()
	l.conns[accepted.RemoteAddr().String()] = c
	l.mu.Unlock()
	return c, nil
}

func (c *conn) Close() error {
	c.from.mu.Lock()
	if key := c.RemoteAddr().String(); c.from.conns[key] == c {
		delete(c.from.conns, key)
	}
	c.from.mu.Unlock()
	return c.Conn.Close()
}

// reset closes a connection without the farewell of TCP.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// drop resets the connection of one client.
func (l *listener) drop(client string) {
	l.mu.Lock()
	c := l.conns[client]
	l.mu.Unlock()
	if c != nil {
		c.reset()
	}
}

// dropAll resets every connection.
func (l *listener) dropAll() {
	l.mu.Lock()
	all := make([]*conn, 0, len(l.conns))
	for _, c := range l.conns {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		c.reset()
	}
}
