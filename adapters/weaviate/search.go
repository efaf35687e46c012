package weaviate

import (
	"context"

	"github.com/weaviate/weaviate/entities/models"
)

// search is a request for objects, for either transport. Names in it have been
// checked.
type search struct {
	class      *class
	tenant     string
	properties []string // simple properties to return
	references []string // references to return
	targetID   string   // property of referred objects to return, uuidProperty for none
	vector     *string  // name of the vector to return, nil for none
	where      *models.WhereFilter
	limit      int
	autocut    int

	near *near // nearest vectors; also the vector side of hybrid
	text *text // words; also the word side of hybrid
	// hybrid fuses near and text.
	hybrid *hybrid
}

// near is a search for vectors.
type near struct {
	vector       []float32
	object       string // UUID of an object whose vector is meant instead
	targets      []string
	combination  Combination
	weights      []float64
	maxDistance  *float64
	minCertainty *float64
}

// text is a search for words.
type text struct {
	query      string
	properties []string // none for all
}

// hybrid is how the two are fused.
type hybrid struct {
	alpha  float64
	fusion Fusion
}

// hit is an object that was found.
type hit struct {
	uuid       string
	properties map[string]any // string, int64, float64, bool or a slice of one; null ones are left out
	references map[string][]target
	vector     []float32
	value      float64 // distance for near, score for text and hybrid
}

// target is what a reference leads to, in the class that was searched.
type target struct {
	uuid string
	id   string // value of search.targetID, "" when it has none
}

// find runs a search over the transport there is.
func (s *server) find(ctx context.Context, q *search) ([]hit, error) {
	var hits []hit
	err := s.do(ctx, func(ctx context.Context) (err error) {
		if s.grpc != nil {
			hits, err = s.findGRPC(ctx, q)
		} else {
			hits, err = s.findGraphQL(ctx, q)
		}
		return err
	})
	return hits, err
}
