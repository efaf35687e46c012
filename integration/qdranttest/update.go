package qdranttest

import (
	"context"
	"maps"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// change is one parsed change of points. It runs under the lock of the
// collection.
type change func(c *collection, version uint64) error

// apply finds the collection and carries a change out.
func (s pointsService) apply(name string, wait *bool, do change, err error) (*qdrant.PointsOperationResponse, error) {
	if err != nil {
		return nil, err
	}
	c, err := s.store.find(name)
	if err != nil {
		return nil, err
	}
	result, err := c.write(wait != nil && *wait, func(version uint64) error { return do(c, version) })
	if err != nil {
		return nil, err
	}
	return &qdrant.PointsOperationResponse{Result: result}, nil
}

func (s pointsService) Upsert(_ context.Context, in *qdrant.UpsertPoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseUpsert(in.GetPoints(), in.GetUpdateFilter(), in.GetUpdateMode())
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) Delete(_ context.Context, in *qdrant.DeletePoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseDelete(in.GetPoints())
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) SetPayload(_ context.Context, in *qdrant.SetPayloadPoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseSetPayload(in.GetPayload(), in.Key, in.GetPointsSelector(), false)
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) OverwritePayload(_ context.Context, in *qdrant.SetPayloadPoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseSetPayload(in.GetPayload(), nil, in.GetPointsSelector(), true)
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) DeletePayload(_ context.Context, in *qdrant.DeletePayloadPoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseDeletePayload(in.GetKeys(), in.GetPointsSelector())
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) ClearPayload(_ context.Context, in *qdrant.ClearPayloadPoints) (*qdrant.PointsOperationResponse, error) {
	do, err := parseSetPayload(nil, nil, in.GetPoints(), true)
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) UpdateVectors(_ context.Context, in *qdrant.UpdatePointVectors) (*qdrant.PointsOperationResponse, error) {
	do, err := parseUpdateVectors(in.GetPoints(), in.GetUpdateFilter())
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) DeleteVectors(_ context.Context, in *qdrant.DeletePointVectors) (*qdrant.PointsOperationResponse, error) {
	do, err := parseDeleteVectors(in.GetVectors().GetNames(), in.GetPointsSelector())
	return s.apply(in.GetCollectionName(), in.Wait, do, err)
}

func (s pointsService) UpdateBatch(_ context.Context, in *qdrant.UpdateBatchPoints) (*qdrant.UpdateBatchResponse, error) {
	if len(in.GetOperations()) == 0 {
		return nil, invalidField("operations", "value [] invalid, must be at least 1 characters")
	}
	changes := make([]change, len(in.GetOperations()))
	for i, operation := range in.GetOperations() {
		var err error
		if changes[i], err = parseOperation(operation); err != nil {
			return nil, err
		}
	}
	out := &qdrant.UpdateBatchResponse{}
	for _, do := range changes {
		one, err := s.apply(in.GetCollectionName(), in.Wait, do, nil)
		if err != nil {
			return nil, err
		}
		out.Result = append(out.Result, one.GetResult())
	}
	return out, nil
}

func parseOperation(in *qdrant.PointsUpdateOperation) (change, error) {
	switch o := in.GetOperation().(type) {
	case *qdrant.PointsUpdateOperation_Upsert:
		return parseUpsert(o.Upsert.GetPoints(), o.Upsert.GetUpdateFilter(), o.Upsert.GetUpdateMode())
	case *qdrant.PointsUpdateOperation_DeletePoints_:
		return parseDelete(o.DeletePoints.GetPoints())
	case *qdrant.PointsUpdateOperation_DeleteDeprecated:
		return parseDelete(o.DeleteDeprecated) //nolint:staticcheck // clients may still send the deprecated form
	case *qdrant.PointsUpdateOperation_SetPayload_:
		return parseSetPayload(o.SetPayload.GetPayload(), o.SetPayload.Key, o.SetPayload.GetPointsSelector(), false)
	case *qdrant.PointsUpdateOperation_OverwritePayload_:
		return parseSetPayload(o.OverwritePayload.GetPayload(), nil, o.OverwritePayload.GetPointsSelector(), true)
	case *qdrant.PointsUpdateOperation_DeletePayload_:
		return parseDeletePayload(o.DeletePayload.GetKeys(), o.DeletePayload.GetPointsSelector())
	case *qdrant.PointsUpdateOperation_ClearPayload_:
		return parseSetPayload(nil, nil, o.ClearPayload.GetPoints(), true)
	case *qdrant.PointsUpdateOperation_ClearPayloadDeprecated:
		return parseSetPayload(nil, nil, o.ClearPayloadDeprecated, true) //nolint:staticcheck // see above
	case *qdrant.PointsUpdateOperation_UpdateVectors_:
		return parseUpdateVectors(o.UpdateVectors.GetPoints(), o.UpdateVectors.GetUpdateFilter())
	case *qdrant.PointsUpdateOperation_DeleteVectors_:
		return parseDeleteVectors(o.DeleteVectors.GetVectors().GetNames(), o.DeleteVectors.GetPointsSelector())
	}
	return nil, invalidArgument("Operation is missing")
}

// parseUpsert reads the points; their vectors are checked against the
// collection when the write is carried out.
func parseUpsert(in []*qdrant.PointStruct, filter *qdrant.Filter, mode qdrant.UpdateMode) (change, error) {
	if _, err := compileFilter(filter, nil); err != nil {
		return nil, err
	}
	points := make([]point, len(in))
	for i, raw := range in {
		if raw.GetId() == nil {
			return nil, invalidArgument("Empty ID is not allowed")
		}
		id, err := parseID(raw.GetId())
		if err != nil {
			return nil, err
		}
		vectors, err := parseVectors(raw.GetVectors())
		if err != nil {
			return nil, err
		}
		if err := checkPayload(raw.GetPayload()); err != nil {
			return nil, err
		}
		points[i] = point{id: id, payload: clonePayload(raw.GetPayload()), vectors: vectors}
	}
	return func(c *collection, version uint64) error {
		fits, err := compileFilter(filter, c.indexes)
		if err != nil {
			return err
		}
		for _, p := range points {
			old := c.points[p.id]
			if old == nil && mode == qdrant.UpdateMode_UpdateOnly || old != nil && (mode == qdrant.UpdateMode_InsertOnly || !fits(old)) {
				continue
			}
			vectors, err := c.vectors.fitAll(p.vectors)
			if err != nil {
				return err
			}
			c.points[p.id] = &point{id: p.id, version: version, payload: p.payload, vectors: vectors}
		}
		return nil
	}, nil
}

// selection finds the points of a selector. Unlike a filter, a list of IDs must
// exist, when strict.
type selection func(c *collection, strict bool) ([]*point, error)

func parseSelection(in *qdrant.PointsSelector) (selection, error) {
	switch kind := in.GetPointsSelectorOneOf().(type) {
	case *qdrant.PointsSelector_Points:
		ids, err := parseIDs(kind.Points.GetIds())
		return func(c *collection, strict bool) ([]*point, error) {
			var found []*point
			for _, id := range ids {
				if p := c.points[id]; p != nil {
					found = append(found, p)
				} else if strict {
					return nil, pointNotFound(id)
				}
			}
			return found, nil
		}, err
	case *qdrant.PointsSelector_Filter:
		if _, err := compileFilter(kind.Filter, nil); err != nil {
			return nil, err
		}
		return func(c *collection, _ bool) ([]*point, error) {
			fits, err := compileFilter(kind.Filter, c.indexes)
			if err != nil {
				return nil, err
			}
			var found []*point
			for _, p := range c.points {
				if fits(p) {
					found = append(found, p)
				}
			}
			return found, nil
		}, nil
	}
	return nil, invalidArgument("Malformed PointsSelector type")
}

func parseDelete(in *qdrant.PointsSelector) (change, error) {
	selected, err := parseSelection(in)
	if err != nil {
		return nil, err
	}
	return func(c *collection, _ uint64) error {
		found, err := selected(c, false)
		for _, p := range found {
			delete(c.points, p.id)
		}
		return err
	}, nil
}

// edit makes a change that replaces every selected point by an edited copy.
func edit(in *qdrant.PointsSelector, alter func(*point)) (change, error) {
	selected, err := parseSelection(in)
	if err != nil {
		return nil, err
	}
	return func(c *collection, version uint64) error {
		found, err := selected(c, true)
		for _, p := range found {
			edited := *p
			edited.version = version
			alter(&edited)
			c.points[p.id] = &edited
		}
		return err
	}, nil
}

func parseSetPayload(payload map[string]*qdrant.Value, key *string, in *qdrant.PointsSelector, overwrite bool) (change, error) {
	if err := checkPayload(payload); err != nil {
		return nil, err
	}
	var at path
	if key != nil {
		var err error
		if at, err = parsePath(*key); err != nil {
			return nil, err
		}
	}
	payload = clonePayload(payload)
	return edit(in, func(p *point) {
		if overwrite {
			p.payload = payload
		} else {
			p.payload = mergeAt(p.payload, at, payload)
		}
	})
}

func parseDeletePayload(keys []string, in *qdrant.PointsSelector) (change, error) {
	paths, err := parsePaths(keys)
	if err != nil {
		return nil, err
	}
	return edit(in, func(p *point) {
		for _, at := range paths {
			p.payload = removeAt(p.payload, at)
		}
	})
}

func parseUpdateVectors(in []*qdrant.PointVectors, filter *qdrant.Filter) (change, error) {
	if _, err := compileFilter(filter, nil); err != nil {
		return nil, err
	}
	points := make([]point, len(in))
	for i, raw := range in {
		id, err := parseID(raw.GetId())
		if err != nil {
			return nil, err
		}
		vectors, err := parseVectors(raw.GetVectors())
		if err != nil {
			return nil, err
		}
		points[i] = point{id: id, vectors: vectors}
	}
	return func(c *collection, version uint64) error {
		fits, err := compileFilter(filter, c.indexes)
		if err != nil {
			return err
		}
		for _, p := range points {
			old := c.points[p.id]
			if old == nil {
				return pointNotFound(p.id)
			}
			if !fits(old) {
				continue
			}
			vectors, err := c.vectors.fitAll(p.vectors)
			if err != nil {
				return err
			}
			edited := *old
			edited.version = version
			edited.vectors = maps.Clone(old.vectors)
			maps.Copy(edited.vectors, vectors)
			c.points[p.id] = &edited
		}
		return nil
	}, nil
}

func parseDeleteVectors(names []string, in *qdrant.PointsSelector) (change, error) {
	do, err := edit(in, func(p *point) {
		p.vectors = maps.Clone(p.vectors)
		for _, name := range names {
			delete(p.vectors, name)
		}
	})
	if err != nil {
		return nil, err
	}
	names = slices.Clone(names)
	return func(c *collection, version uint64) error {
		for _, name := range names {
			if err := c.vectors.check(name); err != nil {
				return err
			}
		}
		return do(c, version)
	}, nil
}
