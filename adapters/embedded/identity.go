package embedded

import "fmt"

// NormalizationL2 says that vectors have unit length, so that their cosine is
// their dot product. It is the only normalisation there is.
const NormalizationL2 = "l2"

// VectorIdentity says what made the vectors of an index. Vectors of different
// identities are never compared.
type VectorIdentity struct {
	Provider      string `json:"provider"`      // who runs the model, such as "onnx"
	Model         string `json:"model"`         // name of the model
	Revision      string `json:"revision"`      // version or digest of the model, "" when unknown
	Dimension     int    `json:"dimension"`     // components of a vector
	Normalization string `json:"normalization"` // NormalizationL2
}

// Differences lists the fields in which v differs from want, each as "field is
// x, wanted y". None means equal. When both have a revision and only the name of
// the model differs, it is one model that was called something else, as when its
// directory was moved; that is no difference.
func (v VectorIdentity) Differences(want VectorIdentity) []string {
	var diff []string
	add := func(field string, got, wanted any) {
		if got != wanted {
			diff = append(diff, fmt.Sprintf("%s is %#v, wanted %#v", field, got, wanted))
		}
	}
	add("provider", v.Provider, want.Provider)
	if renamed := (VectorIdentity{v.Provider, want.Model, v.Revision, v.Dimension, v.Normalization}); v.Revision == "" || renamed != want {
		add("model", v.Model, want.Model)
	}
	add("revision", v.Revision, want.Revision)
	add("dimension", v.Dimension, want.Dimension)
	add("normalization", v.Normalization, want.Normalization)
	return diff
}

// Source says what a corpus was read from. The index stores it as it is given.
type Source struct {
	Name   string `json:"name"`   // what a person calls it, such as "docs"
	Files  int    `json:"files"`  // files or records read
	Bytes  int64  `json:"bytes"`  // their size
	SHA256 string `json:"sha256"` // digest over the records in order, "" when not computed
}

// Field is a part of a chunk that the lexical index can cover.
type Field string

// The fields.
const (
	FieldTitle   Field = "title"
	FieldSection Field = "section"
	FieldText    Field = "text"
)

// DefaultFields is what the lexical index covers unless told otherwise: title,
// section path and text, as one bag of terms. Title and section put the
// subject of a page into chunks that only refer to it. A Markdown chunk whose
// text begins with its own heading counts the words of that heading twice,
// which BM25 saturates to a small advantage.
func DefaultFields() []Field { return []Field{FieldTitle, FieldSection, FieldText} }
