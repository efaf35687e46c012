package qdranttest

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/qdrant/go-client/qdrant"
)

// vector is a stored vector or one to search with. Exactly one of dense, sparse
// and multi is set.
type vector struct {
	dense  []float32
	sparse *sparseVector
	multi  [][]float32
}

// sparseVector has its indices in ascending order.
type sparseVector struct {
	indices []uint32
	values  []float32
}

// denseField is the configuration of a dense vector or multivector.
type denseField struct {
	size     int
	distance qdrant.Distance
	multi    bool
}

// sparseField is the configuration of a sparse vector.
type sparseField struct{ idf bool }

// vectorSet is what vectors the points of a collection can have; the unnamed
// one is "".
type vectorSet struct {
	dense  map[string]denseField
	sparse map[string]sparseField
}

// check says whether a vector of this name exists.
func (s vectorSet) check(name string) error {
	_, dense := s.dense[name]
	_, sparse := s.sparse[name]
	if !dense && !sparse {
		return noSuchVector(name)
	}
	return nil
}

// names lists the vectors, dense before sparse, each sorted.
func (s vectorSet) names() []string {
	return append(slices.Sorted(maps.Keys(s.dense)), slices.Sorted(maps.Keys(s.sparse))...)
}

// fit checks a vector against the configuration of name and brings it into the
// form that is stored and searched with: cosine normalised, a dense vector in a
// multivector field as one row.
func (s vectorSet) fit(name string, v vector) (vector, error) {
	if _, sparse := s.sparse[name]; sparse {
		switch {
		case v.multi != nil:
			return vector{}, wrongMulti()
		case v.sparse == nil:
			return vector{}, wrongSparse()
		}
		return v, nil
	}
	field, found := s.dense[name]
	if !found {
		return vector{}, noSuchVector(name)
	}
	if v.sparse != nil {
		return vector{}, wrongSparse()
	}
	rows := v.multi
	if rows == nil {
		rows = [][]float32{v.dense}
	}
	fitted := make([][]float32, len(rows))
	for i, row := range rows {
		if len(row) != field.size {
			return vector{}, wrongDimension(field.size, len(row))
		}
		if field.distance == qdrant.Distance_Cosine {
			row = normalise(row)
		}
		fitted[i] = row
	}
	if field.multi {
		return vector{multi: fitted}, nil
	}
	if v.multi != nil {
		return vector{}, wrongMulti()
	}
	return vector{dense: fitted[0]}, nil
}

// normalise divides by the length; a vector of length 0 or 1 stays as it is.
func normalise(row []float32) []float32 {
	var squares float32
	for _, x := range row {
		squares += x * x
	}
	if squares < 1.1920929e-7 || math.Abs(float64(squares)-1) <= 1e-6 {
		return row
	}
	length := float32(math.Sqrt(float64(squares)))
	scaled := make([]float32, len(row))
	for i, x := range row {
		scaled[i] = x / length
	}
	return scaled
}

func newSparse(field string, indices []uint32, values []float32) (*sparseVector, error) {
	if len(indices) != len(values) {
		return nil, invalidField(field+".values", "Validation error: must be the same length as indices [{}]")
	}
	order := make([]int, len(indices))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(indices[a], indices[b]) })
	v := &sparseVector{indices: make([]uint32, len(order)), values: make([]float32, len(order))}
	for i, from := range order {
		v.indices[i], v.values[i] = indices[from], values[from]
		if i > 0 && v.indices[i] == v.indices[i-1] {
			return nil, invalidField(field+".indices", "Validation error: must be unique [{}]")
		}
	}
	return v, nil
}

func newMulti(field string, rows []*qdrant.DenseVector) ([][]float32, error) {
	if len(rows) == 0 {
		return nil, invalidField(field+".data", "multi vector must not be empty")
	}
	multi := make([][]float32, len(rows))
	for i, row := range rows {
		multi[i] = slices.Clone(row.GetData())
		if len(multi[i]) == 0 {
			return nil, invalidField(field+".data", "all vectors must be non-empty")
		}
		if len(multi[i]) != len(multi[0]) {
			return nil, invalidArgument("Malformed multi-dense vector: Vector dimension error: expected dim: %d, got %d", len(multi[0]), len(multi[i]))
		}
	}
	return multi, nil
}

// parseVector reads a vector to store, in the present and the deprecated form.
func parseVector(v *qdrant.Vector) (vector, error) {
	const field = "vector"
	switch kind := v.GetVector().(type) {
	case *qdrant.Vector_Dense:
		return vector{dense: slices.Clone(kind.Dense.GetData())}, nil
	case *qdrant.Vector_Sparse:
		sparse, err := newSparse(field, kind.Sparse.GetIndices(), kind.Sparse.GetValues())
		return vector{sparse: sparse}, err
	case *qdrant.Vector_MultiDense:
		multi, err := newMulti(field, kind.MultiDense.GetVectors())
		return vector{multi: multi}, err
	case nil:
	default:
		return vector{}, notModelled("inference on documents, images and objects")
	}
	data := v.GetData()          //nolint:staticcheck // clients may still send the deprecated form
	indices := v.GetIndices()    //nolint:staticcheck // see above
	count := v.GetVectorsCount() //nolint:staticcheck // see above
	switch {
	case indices != nil:
		sparse, err := newSparse(field, indices.GetData(), data)
		return vector{sparse: sparse}, err
	case count > 0:
		if len(data) == 0 || len(data)%int(count) != 0 {
			return vector{}, invalidField(field+".data", "length %d does not match vectors count %d", len(data), count)
		}
		multi := make([][]float32, 0, count)
		for row := range slices.Chunk(data, len(data)/int(count)) {
			multi = append(multi, slices.Clone(row))
		}
		return vector{multi: multi}, nil
	}
	return vector{dense: slices.Clone(data)}, nil
}

// parseVectors reads the vectors of a point.
func parseVectors(v *qdrant.Vectors) (map[string]vector, error) {
	parsed := map[string]vector{}
	switch kind := v.GetVectorsOptions().(type) {
	case *qdrant.Vectors_Vector:
		one, err := parseVector(kind.Vector)
		if err != nil {
			return nil, err
		}
		if one.sparse != nil {
			return nil, badInput("Validation failed: Sparse vector must be named")
		}
		parsed[""] = one
	case *qdrant.Vectors_Vectors:
		for name, raw := range kind.Vectors.GetVectors() {
			one, err := parseVector(raw)
			if err != nil {
				return nil, err
			}
			parsed[name] = one
		}
	default:
		return nil, invalidArgument("Expected some vectors")
	}
	return parsed, nil
}

// fitAll checks all vectors of a point, in the order of their names.
func (s vectorSet) fitAll(raw map[string]vector) (map[string]vector, error) {
	fitted := make(map[string]vector, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		v, err := s.fit(name, raw[name])
		if err != nil {
			return nil, err
		}
		fitted[name] = v
	}
	return fitted, nil
}

func (v vector) proto() *qdrant.VectorOutput {
	switch {
	case v.sparse != nil:
		return &qdrant.VectorOutput{Vector: &qdrant.VectorOutput_Sparse{
			Sparse: &qdrant.SparseVector{Indices: v.sparse.indices, Values: v.sparse.values},
		}}
	case v.multi != nil:
		rows := make([]*qdrant.DenseVector, len(v.multi))
		for i, row := range v.multi {
			rows[i] = &qdrant.DenseVector{Data: row}
		}
		return &qdrant.VectorOutput{Vector: &qdrant.VectorOutput_MultiDense{
			MultiDense: &qdrant.MultiDenseVector{Vectors: rows},
		}}
	}
	return &qdrant.VectorOutput{Vector: &qdrant.VectorOutput_Dense{Dense: &qdrant.DenseVector{Data: v.dense}}}
}

// configured is check with the words of the calls that look at the
// configuration first.
func (s vectorSet) configured(name string) error {
	if s.check(name) == nil {
		return nil
	}
	names := s.names()
	switch {
	case len(names) == 0:
		return badInput("Vectors are not configured in this collection")
	case len(names) == 1 && names[0] == "":
		return badInput("Vector with name %s is not configured in this collection", name)
	case name == "":
		return badInput("Collection requires specified vector name in the request, available names: %s", strings.Join(names, ", "))
	}
	return badInput("Vector with name `%s` is not configured in this collection, available names: %s", name, strings.Join(names, ", "))
}
