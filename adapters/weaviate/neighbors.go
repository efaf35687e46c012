package weaviate

import (
	"context"
	"fmt"
	"iter"

	"github.com/mapmatched/mmplug/mapmatched"
)

// neighborWorkers is how many chunks are asked about at a time.
const neighborWorkers = 8

// NearestNeighbors implements mapmatched.NeighborLister: the server's own index
// is asked for the neighbours of every object (nearObject), in the order of the
// UUIDs. It may miss some, as approximate indexes do. Like [Provider.Records]
// it takes no filter. Objects without a chunk ID or a vector are left out.
func (p *Provider) NearestNeighbors(ctx context.Context, k int) iter.Seq2[mapmatched.Edge, error] {
	const op = "nearest neighbors"
	return func(yield func(mapmatched.Edge, error) bool) {
		err := p.checkListing()
		switch {
		case err != nil:
		case p.opts.Mode != ModeVector:
			err = fmt.Errorf("%w: Mode is %q, and neighbours are found by vectors: use mode vector", mapmatched.ErrInvalidConfig, p.opts.Mode)
		case k < 1:
			err = fmt.Errorf("%w: k is %d, want 1 or more", mapmatched.ErrInvalidConfig, k)
		}
		if err != nil {
			yield(mapmatched.Edge{}, classify(op, err))
			return
		}
		for page, err := range p.pages(ctx) {
			if err != nil {
				yield(mapmatched.Edge{}, classify(op, err))
				return
			}
			asked := make([]hit, 0, len(page))
			for _, o := range page {
				h := hit{uuid: o.ID.String(), properties: map[string]any{}}
				if fields, ok := o.Properties.(map[string]any); ok && p.id != uuidProperty {
					h.properties[p.id] = fields[p.id]
				}
				if p.chunkID(&h) != "" && objectVector(o, p.target) != nil {
					asked = append(asked, h)
				}
			}
			found, err := p.neighbors(ctx, asked, k)
			if err != nil {
				yield(mapmatched.Edge{}, classify(op, err))
				return
			}
			for _, edges := range found {
				for _, e := range edges {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// neighbors finds the neighbours of some objects, several at a time.
func (p *Provider) neighbors(ctx context.Context, asked []hit, k int) ([][]mapmatched.Edge, error) {
	found := make([][]mapmatched.Edge, len(asked))
	err := parallel(ctx, len(asked), neighborWorkers, func(ctx context.Context, i int) (err error) {
		found[i], err = p.neighborsOf(ctx, &asked[i], k)
		return err
	})
	return found, err
}

func (p *Provider) neighborsOf(ctx context.Context, of *hit, k int) ([]mapmatched.Edge, error) {
	id := p.chunkID(of)
	// The object itself is among the nearest.
	near, err := p.best(ctx, &search{class: p.class, tenant: p.tenant, properties: p.idProperties(),
		near: &near{object: of.uuid, targets: p.targets, combination: p.opts.Combination, weights: p.opts.Weights}}, k+1)
	if err != nil {
		return nil, fmt.Errorf("chunk %q: %w", id, err)
	}
	edges := make([]mapmatched.Edge, 0, k)
	for _, c := range near {
		if c.ChunkID != id && len(edges) < k {
			// float32 gives equal vectors distances slightly beside 0.
			edges = append(edges, mapmatched.Edge{From: id, To: c.ChunkID, Weight: max(c.Parts["distance"], 0), Type: mapmatched.EdgeKNN})
		}
	}
	return edges, nil
}
