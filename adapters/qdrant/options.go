package qdrant

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The defaults of a connection.
const (
	DefaultPort            = "6334"           // of gRPC; 6333 is REST
	DefaultTimeout         = 10 * time.Second // of one call
	DefaultPoolSize        = 2                // connections
	DefaultMaxMessageBytes = 64 << 20         // of one request or reply
	DefaultRetries         = 3                // after a first call that failed
	DefaultRetryWait       = 100 * time.Millisecond
	DefaultMaxRetryWait    = 30 * time.Second
)

// minKeepalive is the shortest time between pings that gRPC itself sends.
const minKeepalive = 10 * time.Second

// ClientOptions are the settings of a connection. The zero value, and nil, are
// the defaults.
type ClientOptions struct {
	// APIKey is sent with every call. "" sends none.
	APIKey string
	// AllowPlaintextKey sends the API key without TLS, for everybody on the way
	// to read. Otherwise that is refused.
	AllowPlaintextKey bool
	// TLS encrypts the connection and checks the certificate of the server.
	TLS bool
	// TLSConfig is the configuration of TLS, nil for TLS 1.2 or newer and the
	// certificates of the system. CAFile and ServerName are put on top.
	TLSConfig *tls.Config
	// CAFile is a file of certificates in PEM form to trust instead of those of
	// the system.
	CAFile string
	// ServerName is the name in the certificate, "" for the host.
	ServerName string
	// Timeout bounds each call, retries apart. 0 means DefaultTimeout.
	Timeout time.Duration
	// PoolSize is how many connections take turns. 0 means DefaultPoolSize.
	PoolSize int
	// MaxMessageBytes bounds one request and one reply. 0 means
	// DefaultMaxMessageBytes; gRPC's own limit would be 4 MiB.
	MaxMessageBytes int
	// Keepalive is how long a busy connection may be silent before it is pinged,
	// 10 s or more. 0 sends no pings: servers and proxies with an enforcement
	// policy close connections that ping more often than every 5 minutes.
	Keepalive time.Duration
	// Retries is how often a call is tried again when the server is away or
	// limits the rate. 0 means DefaultRetries, a negative number none.
	Retries int
	// RetryWait is the longest wait before the first retry; it doubles with
	// every further one. A server that says how long to wait is obeyed instead.
	// 0 means DefaultRetryWait.
	RetryWait time.Duration
	// MaxRetryWait bounds every wait. A call whose server asks for more fails at
	// once. 0 means DefaultMaxRetryWait.
	MaxRetryWait time.Duration
	// ReadConsistency says how many replicas must agree on what is read. "" is
	// the server's default.
	ReadConsistency ReadConsistency
}

// Validate reports every value that is out of range.
func (o *ClientOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, invalidConfig(format, args...))
	}
	if o.APIKey != "" && !o.TLS && !o.AllowPlaintextKey {
		fault("the API key would travel without TLS: set TLS (tls=true), or AllowPlaintextKey (allow_plaintext_key=true) if everybody on the way may read it")
	}
	if !o.TLS && (o.TLSConfig != nil || o.CAFile != "" || o.ServerName != "") {
		fault("TLSConfig, CAFile and ServerName have no effect without TLS: set TLS (tls=true)")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Timeout", o.Timeout}, {"RetryWait", o.RetryWait}, {"MaxRetryWait", o.MaxRetryWait}} {
		if d.value < 0 {
			fault("%s is %v, want a positive duration or 0 for the default", d.name, d.value)
		}
	}
	if o.Keepalive != 0 && o.Keepalive < minKeepalive {
		fault("Keepalive is %v, want %v or more, or 0 for no pings", o.Keepalive, minKeepalive)
	}
	if o.PoolSize < 0 || o.PoolSize > 256 {
		fault("PoolSize is %d, want 1 to 256, or 0 for %d", o.PoolSize, DefaultPoolSize)
	}
	if o.MaxMessageBytes < 0 {
		fault("MaxMessageBytes is %d, want a positive number, or 0 for %d", o.MaxMessageBytes, DefaultMaxMessageBytes)
	}
	if o.Retries > 100 {
		fault("Retries is %d, want at most 100", o.Retries)
	}
	return errors.Join(append(errs, o.ReadConsistency.Validate())...)
}

// withDefaults returns the options with every default filled in.
func (o ClientOptions) withDefaults() ClientOptions {
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.PoolSize, DefaultPoolSize)
	setDefault(&o.MaxMessageBytes, DefaultMaxMessageBytes)
	setDefault(&o.Retries, DefaultRetries)
	setDefault(&o.RetryWait, DefaultRetryWait)
	setDefault(&o.MaxRetryWait, DefaultMaxRetryWait)
	return o
}

func setDefault[T comparable](v *T, byDefault T) {
	var zero T
	if *v == zero {
		*v = byDefault
	}
}

func invalidConfig(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...)
}

// ReadConsistency says how many replicas must agree on what is read: one of
// the constants, or a number of replicas such as "2".
type ReadConsistency string

// The read consistencies of the server.
const (
	ReadAll      ReadConsistency = "all"
	ReadMajority ReadConsistency = "majority"
	ReadQuorum   ReadConsistency = "quorum"
)

// Validate reports a value that is none of those.
func (r ReadConsistency) Validate() error {
	switch r {
	case "", ReadAll, ReadMajority, ReadQuorum:
		return nil
	}
	if n, err := strconv.ParseUint(string(r), 10, 31); err != nil || n == 0 {
		return invalidConfig("ReadConsistency is %q, want %q, %q, %q or a number of replicas", string(r), ReadAll, ReadMajority, ReadQuorum)
	}
	return nil
}

func (r ReadConsistency) proto() *pb.ReadConsistency {
	byType := func(t pb.ReadConsistencyType) *pb.ReadConsistency {
		return &pb.ReadConsistency{Value: &pb.ReadConsistency_Type{Type: t}}
	}
	switch r {
	case "":
		return nil
	case ReadAll:
		return byType(pb.ReadConsistencyType_All)
	case ReadMajority:
		return byType(pb.ReadConsistencyType_Majority)
	case ReadQuorum:
		return byType(pb.ReadConsistencyType_Quorum)
	}
	n, _ := strconv.ParseUint(string(r), 10, 31) // Validate has seen it
	return &pb.ReadConsistency{Value: &pb.ReadConsistency_Factor{Factor: n}}
}
