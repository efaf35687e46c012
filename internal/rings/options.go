package rings

import (
	"errors"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultCacheBytes is the memory for edges unless told otherwise, 64 MiB.
const DefaultCacheBytes = 64 << 20

// Options are the settings of [New]. The zero value, and nil, are an
// undirected graph with the defaults.
type Options struct {
	// MaximumDistance clamps every distance; positive and finite. 0 means
	// mapmatched.DefaultMaximumDistance.
	MaximumDistance float64
	// Directed makes an edge passable from From to To only.
	Directed bool
	// Types are the types of the edges to use; empty for all.
	Types []mapmatched.EdgeType
	// CacheBytes bounds the memory for edges already fetched, those used least
	// recently going first. 0 means DefaultCacheBytes; negative keeps none.
	CacheBytes int64
	// Adapter is the adapter in the errors of the graph, "" for "rings".
	Adapter string
}

// Validate reports every value that is out of range.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if !(o.MaximumDistance >= 0) || math.IsInf(o.MaximumDistance, 0) {
		errs = append(errs, fmt.Errorf("%w: MaximumDistance is %v, want a positive finite number, or 0 for %v", mapmatched.ErrInvalidConfig, o.MaximumDistance, mapmatched.DefaultMaximumDistance))
	}
	return errors.Join(errs...)
}
