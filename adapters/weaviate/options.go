package weaviate

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Connection says how a server is reached. The zero value is HTTP without TLS
// and without a key, searched by GraphQL.
type Connection struct {
	// GRPC is the port of the gRPC interface, or its host and port where it has
	// a host of its own. Searches and batches then go by gRPC; "" leaves them to
	// GraphQL and REST.
	GRPC string
	// TLS encrypts both interfaces and verifies the server's certificate.
	TLS bool
	// CAFile is a file of PEM certificates to trust instead of the system's. It
	// needs TLS.
	CAFile string
	// Plaintext allows secrets to be sent without TLS to a host that is not this
	// machine.
	Plaintext bool
	// APIKey is sent with every request, unless it is "".
	APIKey string
	// ClientSecret is the secret of an OIDC client: tokens are fetched with it
	// (client credentials) from the issuer that the server names. It excludes
	// APIKey.
	ClientSecret string
	// ClientID is the ID of that client; "" takes the one that the server names.
	ClientID string
	// Scopes are asked for beside those that the server names.
	Scopes []string
	// Timeout bounds one request; 0 means 30 s.
	Timeout time.Duration
	// Retries is how often a request is repeated that the server could not take
	// (not reachable, overloaded), with pauses that double from 100 ms to 2 s and
	// a random part; 0 means 4, and −1 none.
	Retries int
}

// The defaults of Connection.
const (
	DefaultTimeout = 30 * time.Second
	DefaultRetries = 4
)

const (
	maxTimeout = time.Hour
	maxRetries = 100
)

func (o *Connection) faults() faults {
	var f faults
	if o.GRPC != "" {
		if _, err := grpcAddress("host", o.GRPC); err != nil {
			f.add("%v", err)
		}
	}
	if o.CAFile != "" && !o.TLS {
		f.add("CAFile is %q and TLS is off: set TLS", o.CAFile)
	}
	if o.APIKey != "" && o.ClientSecret != "" {
		f.add("APIKey and ClientSecret are both set: give one")
	}
	if o.ClientSecret == "" && (o.ClientID != "" || len(o.Scopes) > 0) {
		f.add("ClientID %q and Scopes %q have no effect without ClientSecret", o.ClientID, o.Scopes)
	}
	if o.Timeout < 0 || o.Timeout > maxTimeout {
		f.add("Timeout is %v, want 0 for %v to %v", o.Timeout, DefaultTimeout, maxTimeout)
	}
	if o.Retries < -1 || o.Retries > maxRetries {
		f.add("Retries is %d, want −1 for none, 0 for %d, to %d", o.Retries, DefaultRetries, maxRetries)
	}
	return f
}

// grpcAddress completes the setting GRPC with the host of the HTTP interface.
func grpcAddress(host, setting string) (string, error) {
	if _, err := strconv.ParseUint(setting, 10, 16); err == nil {
		return net.JoinHostPort(host, setting), nil
	}
	h, port, err := net.SplitHostPort(setting)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || h == "" || portErr != nil {
		return "", fmt.Errorf("GRPC is %q, want a port such as 50051 or a host and port", setting)
	}
	return setting, nil
}

// Place says which objects of a server are meant and how chunks are read from
// them. The zero value fits classes that this package wrote.
type Place struct {
	// Tenant is the tenant of a class that has tenants.
	Tenant string
	// IDProperty is the text property with the chunk ID; "id" takes the UUID of
	// the object. "" is "chunk_id" where the class has it, else "id". To look
	// chunks up by such a property it needs the tokenization "field".
	IDProperty string
	// TextProperty is the property with the text of the chunk. "" is "text" or
	// "content" where the class has it, else its only text property.
	TextProperty string
}

// Mode is how a provider searches.
type Mode string

// The modes.
const (
	ModeVector Mode = "vector" // nearest vectors
	ModeBM25   Mode = "bm25"   // words
	ModeHybrid Mode = "hybrid" // both, fused by the server
)

// Fusion is how the server fuses words and vectors.
type Fusion string

// The fusions. Servers differ in their default, so one is always sent.
const (
	// FusionRelativeScore scales the scores of each search to [0, 1] and adds
	// them with the weights alpha (vectors) and 1 − alpha (words).
	FusionRelativeScore Fusion = "relative_score"
	// FusionRanked adds weight/(60 + rank) with ranks from 0.
	FusionRanked Fusion = "ranked"
)

// DefaultAlpha is the weight of vectors in a hybrid search.
const DefaultAlpha = 0.7

// Combination is how distances to several target vectors become one.
type Combination string

// The combinations.
const (
	CombineMinimum       Combination = "minimum"        // the smallest distance
	CombineAverage       Combination = "average"        // the mean distance
	CombineSum           Combination = "sum"            // the sum of distances
	CombineManualWeights Combination = "manual_weights" // Σ weight·distance
	CombineRelativeScore Combination = "relative_score" // Σ weight·distance, scaled for each target among the hits
)

// Options are the settings of a provider. The zero value searches the vectors
// of a class that this package wrote.
type Options struct {
	Connection
	Place

	// Mode is "" for ModeVector, ModeVector or ModeBM25 for [Open]; it is "" or
	// ModeHybrid for [OpenHybrid].
	Mode Mode
	// Alpha is the weight of vectors in a hybrid search, 0 to 1; nil means 0.7.
	Alpha *float64
	// Fusion of a hybrid search; "" means FusionRelativeScore.
	Fusion Fusion
	// Vectors are the names of the vectors to search. None is the class's only
	// vector.
	Vectors []string
	// Combination joins the distances to several Vectors; "" means
	// CombineMinimum.
	Combination Combination
	// Weights are the weights of Vectors, in their order, for
	// CombineManualWeights and CombineRelativeScore.
	Weights []float64
	// SearchProperties are the properties whose words are searched, each with a
	// weight as in "title^2" where wanted. None is all that can be.
	SearchProperties []string
	// Properties are returned as metadata. nil is all of simple type (text,
	// numbers, booleans, dates, UUIDs and lists of them) but text and ID; empty
	// is none.
	Properties []string
	// Where restricts the objects. [ParseWhere] reads its JSON form; the
	// client's package filters builds it. Its properties have to be of the class;
	// whole numbers fit properties of type int and number alike.
	Where *models.WhereFilter
	// Autocut ends the hits after so many jumps of the score; 0 is off.
	Autocut int
	// MaxDistance leaves out what is farther, in the distance of the metric; nil
	// sends none. It is for ModeVector.
	MaxDistance *float64
	// MinCertainty leaves out what has a lower certainty, (1 + cosine)/2; nil
	// sends none. It is for ModeVector and cosine alone.
	MinCertainty *float64
	// Embedder turns Query.Text into a vector when a query has none. nil means
	// that every query brings its vector.
	Embedder mapmatched.Embedder
}

// Validate reports every value that is out of range.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	return o.faults().err()
}

func (o *Options) faults() faults {
	f := slices.Concat(o.Connection.faults(), o.Place.faults())
	switch o.Mode {
	case "", ModeVector, ModeBM25, ModeHybrid:
	default:
		f.add("Mode is %q, want %q, %q, %q or empty", o.Mode, ModeVector, ModeBM25, ModeHybrid)
	}
	if o.Alpha != nil && !(*o.Alpha >= 0 && *o.Alpha <= 1) {
		f.add("Alpha is %v, want 0 (words) to 1 (vectors)", *o.Alpha)
	}
	switch o.Fusion {
	case "", FusionRelativeScore, FusionRanked:
	default:
		f.add("Fusion is %q, want %q, %q or empty", o.Fusion, FusionRelativeScore, FusionRanked)
	}
	f = append(f, o.targetFaults()...)
	f = append(f, nameFaults("Properties", o.Properties)...)
	f = append(f, searchPropertyFaults(o.SearchProperties)...)
	if o.Where != nil {
		if err := checkWhere(o.Where); err != nil {
			f.add("Where: %v", err)
		}
	}
	if o.Autocut < 0 || o.Autocut > math.MaxInt32 {
		f.add("Autocut is %d, want 0 for off or a number of jumps", o.Autocut)
	}
	if o.MaxDistance != nil && !finite(*o.MaxDistance) {
		f.add("MaxDistance is %v, want a finite number", *o.MaxDistance)
	}
	if o.MinCertainty != nil && !(*o.MinCertainty >= 0 && *o.MinCertainty <= 1) {
		f.add("MinCertainty is %v, want 0 to 1", *o.MinCertainty)
	}
	if o.MaxDistance != nil && o.MinCertainty != nil {
		f.add("MaxDistance and MinCertainty are both set: give one")
	}
	return append(f, o.unusedFaults()...)
}

// unusedFaults are settings that the mode does not use.
func (o *Options) unusedFaults() faults {
	var f faults
	unused := func(name string, set bool) {
		if set {
			f.add("%s has no effect in mode %q: leave it out", name, o.mode())
		}
	}
	unused("Alpha", o.Alpha != nil && o.mode() != ModeHybrid)
	unused("Fusion", o.Fusion != "" && o.mode() != ModeHybrid)
	unused("MaxDistance", o.MaxDistance != nil && o.mode() != ModeVector)
	unused("MinCertainty", o.MinCertainty != nil && o.mode() != ModeVector)
	unused("SearchProperties", len(o.SearchProperties) > 0 && o.mode() == ModeVector)
	unused("Vectors", len(o.Vectors) > 0 && o.mode() == ModeBM25)
	unused("Embedder", o.Embedder != nil && o.mode() == ModeBM25)
	return f
}

func (o *Options) mode() Mode {
	if o.Mode == "" {
		return ModeVector
	}
	return o.Mode
}

func (o *Options) targetFaults() faults {
	var f faults
	for i, name := range o.Vectors {
		if err := checkName("vector", name); err != nil {
			f.add("%v", err)
		}
		if slices.Contains(o.Vectors[:i], name) {
			f.add("Vectors has %q twice", name)
		}
	}
	weighted := false
	switch o.Combination {
	case "", CombineMinimum, CombineAverage, CombineSum:
	case CombineManualWeights, CombineRelativeScore:
		weighted = true
	default:
		f.add("Combination is %q, want %q, %q, %q, %q, %q or empty", o.Combination,
			CombineMinimum, CombineAverage, CombineSum, CombineManualWeights, CombineRelativeScore)
	}
	if o.Combination != "" && len(o.Vectors) < 2 {
		f.add("Combination is %q and there are %d Vectors: name two or more", o.Combination, len(o.Vectors))
	}
	switch {
	case weighted && len(o.Weights) != len(o.Vectors):
		f.add("there are %d Weights for %d Vectors: give one for each", len(o.Weights), len(o.Vectors))
	case !weighted && len(o.Weights) > 0:
		f.add("Weights have no effect with Combination %q: use %q or %q", o.Combination, CombineManualWeights, CombineRelativeScore)
	}
	sum := 0.0
	for i, w := range o.Weights {
		if !finite(w) || w < 0 {
			f.add("Weights[%d] is %v, want a finite number from 0", i, w)
		}
		sum += w
	}
	if len(o.Weights) > 0 && sum == 0 {
		f.add("Weights are all 0")
	}
	return f
}

func (o *Place) faults() faults {
	var f faults
	if o.Tenant != "" {
		if err := checkTenant(o.Tenant); err != nil {
			f.add("%v", err)
		}
	}
	for _, name := range []string{o.IDProperty, o.TextProperty} {
		if name != "" {
			if err := checkName("property", name); err != nil {
				f.add("%v", err)
			}
		}
	}
	return f
}

// faults collects what is wrong with options.
type faults []error

func (f *faults) add(format string, args ...any) {
	*f = append(*f, fmt.Errorf("%w: %w", mapmatched.ErrInvalidConfig, fmt.Errorf(format, args...)))
}

func (f faults) err() error { return errors.Join(f...) }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
