package qdranttest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// Options are the settings of [Start]. The zero value, and nil, are the
// defaults.
type Options struct {
	// Version is what the health check says, "" for 1.17.1.
	Version string
	// APIKey, when set, must come with every call but the health checks, in the
	// metadata api-key or as authorization: Bearer.
	APIKey string
	// ReadOnlyAPIKey, when set, is a second key that may only read. It needs
	// APIKey.
	ReadOnlyAPIKey string
	// TLS, when set, is the server's side of TLS. It needs a certificate.
	TLS *tls.Config
	// WriteDelay is how long a write with wait=false stays invisible, 0 for
	// 20 ms. Below 0 it is visible to the next call. A later write with
	// wait=true makes it visible at once.
	WriteDelay time.Duration
	// MinPing is the shortest time between two keepalive pings of a client; one
	// that pings more often is sent away with GOAWAY too_many_pings after its
	// third early ping. 0 allows any number, as Qdrant does; the default of
	// grpc-go servers is 5 minutes.
	MinPing time.Duration
	// MaxReceive is the largest request in bytes, 0 for no limit, as in Qdrant.
	MaxReceive int
	// Seed chooses which points sample and the distance matrix take.
	Seed uint64
}

const (
	defaultVersion    = "1.17.1"
	defaultWriteDelay = 20 * time.Millisecond
)

// Validate reports every value that cannot be used.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("qdranttest: "+format, args...)) }
	if o.ReadOnlyAPIKey != "" && o.APIKey == "" {
		fault("ReadOnlyAPIKey is set without APIKey: set both")
	}
	if o.ReadOnlyAPIKey != "" && o.ReadOnlyAPIKey == o.APIKey {
		fault("ReadOnlyAPIKey equals APIKey: give two keys")
	}
	if o.TLS != nil && len(o.TLS.Certificates) == 0 && o.TLS.GetCertificate == nil && o.TLS.GetConfigForClient == nil {
		fault("TLS has no certificate: set Certificates")
	}
	if o.MinPing < 0 {
		fault("MinPing is %v, want 0 or more", o.MinPing)
	}
	if o.MaxReceive < 0 {
		fault("MaxReceive is %d, want 0 or more bytes", o.MaxReceive)
	}
	return errors.Join(errs...)
}
