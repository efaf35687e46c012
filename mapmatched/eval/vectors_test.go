package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// hashing embeds a text as the sum of a vector for each of its terms.
type hashing struct {
	dimension int
	texts     *atomic.Int64
}

func (h hashing) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		h.texts.Add(1)
		out[i] = make([]float32, h.dimension)
		out[i][0] = 0.01 // a text without terms has a direction too
		for _, term := range lexical.Analyze(text) {
			f := fnv.New64a()
			_, _ = f.Write([]byte(term))
			sum := f.Sum64()
			for j := range out[i] {
				sum = sum*6364136223846793005 + 1442695040888963407
				out[i][j] += float32(int32(sum>>32)) / (1 << 31)
			}
		}
	}
	return out, nil
}

var hashIdentity = policy.VectorIdentity{Provider: "test", Model: "hashing", Revision: "1", Normalization: "l2"}

func embedAll(t testing.TB, d *Data, dir string) (*Vectors, *atomic.Int64) {
	t.Helper()
	texts := &atomic.Int64{}
	v, err := Embed(t.Context(), d, hashing{24, texts}, hashIdentity, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v, texts
}

func TestDense(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 6, Conversations: 5})
	vectors, _ := embedAll(t, d, "")
	w := worldOf(t, d, &WorldOptions{Vectors: vectors, Arm: ArmDense})
	m := baseline(t, Pointwise)
	rankings, err := m.Rank(t.Context(), w, &d.Conversations[0], 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(rankings[0].ChunkIDs) != len(d.Corpus.Chunks) {
		t.Fatalf("%d chunks, wanted all", len(rankings[0].ChunkIDs))
	}
	query, err := vectors.Embedder.Embed(t.Context(), []string{d.Conversations[0].Turns[0].Query})
	if err != nil {
		t.Fatal(err)
	}
	cosine := func(id string) float64 {
		sum, squares := 0.0, 0.0
		for i, x := range query[0] {
			sum += float64(x) * float64(vectors.Chunks[id][i])
			squares += float64(x) * float64(x)
		}
		return sum / math.Sqrt(squares)
	}
	for i, id := range rankings[0].ChunkIDs[1:] {
		if cosine(id) > cosine(rankings[0].ChunkIDs[i])+1e-6 {
			t.Fatalf("rank %d has cosine %v, the one before %v", i+2, cosine(id), cosine(rankings[0].ChunkIDs[i]))
		}
	}
	collection, err := w.Collection(t.Context(), &d.Conversations[0], plain(t))
	if err != nil {
		t.Fatal(err)
	}
	q := mapmatched.Query{Vector: query[0]}
	found, err := denseSearch{collection}.Candidates(t.Context(), q, 5)
	if err != nil {
		t.Fatal(err)
	}
	scored, err := denseSearch{collection}.ScoreChunks(t.Context(), q, append(idsOf(found), "unknown"))
	if err != nil || len(scored) != 5 || scored[4].Score != found[4].Score {
		t.Errorf("scores %v, wanted those of %v: %v", scored, found, err)
	}
	if _, err := (denseSearch{collection}).Candidates(t.Context(), mapmatched.Query{Vector: []float32{1}}, 5); err == nil || !strings.Contains(err.Error(), "1 components") {
		t.Errorf("another dimension: %v", err)
	}
	if got, err := (denseSearch{collection}).Candidates(t.Context(), mapmatched.Query{Text: " "}, 5); got != nil || err != nil {
		t.Errorf("a query without words: %v, %v", got, err)
	}
}

// Every method runs on every arm; a policy that pins the vectors fuses by itself,
// and is refused vectors of another model.
func TestArms(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 4, Turns: 4})
	vectors, _ := embedAll(t, d, "")
	pinned := *plain(t)
	pinned.Name, pinned.StatedDigest, pinned.Evidence = "pinned", "", ""
	pinned.Vectors = policy.Vectors{Provider: "test", Model: "hashing", Revision: "1", Dimension: 24, Normalization: "l2", MaxQueryTokens: 256}
	pinned.Arms.Stage, pinned.Arms.Answer.Enabled, pinned.Arms.Feedback.Enabled = policy.StageActive, true, true
	methods := []Method{PolicyMethod(plain(t)), PolicyMethod(&pinned), baseline(t, History), baseline(t, DecayedHistory), baseline(t, MMR),
		{Name: "knn", Policy: plain(t), Graph: GraphKNN, Ablation: true}}
	means := map[Arm]string{}
	for _, arm := range []Arm{ArmLexical, ArmDense, ArmHybrid} {
		r, err := Run(t.Context(), worldOf(t, d, &WorldOptions{Vectors: vectors, Arm: arm}), methods, &RunOptions{Samples: 10})
		if err != nil {
			t.Fatalf("%s: %v", arm, err)
		}
		if r.Model == nil || r.Model.Dimension != 24 {
			t.Errorf("%s: model %+v", arm, r.Model)
		}
		var list []string
		for i := range r.Methods {
			list = append(list, fmt.Sprintf("%s %.4f", r.Methods[i].Name, r.Methods[i].Slice(SliceAll).Metrics[MRR].Mean))
		}
		means[arm] = list[2]
		if slices.Contains(list[:1], "") || arm != ArmLexical && list[0] == means[ArmLexical] {
			t.Errorf("%s: %v", arm, list)
		}
	}
	// The policy that pins them fuses whatever the arm of the others is.
	if means[ArmLexical] != means[ArmDense] || means[ArmLexical] != means[ArmHybrid] {
		t.Errorf("the pinned policy differs by the arm of the baselines: %v", means)
	}
	pinned.Vectors.Revision = "2"
	_, err := Run(t.Context(), worldOf(t, d, &WorldOptions{Vectors: vectors}), []Method{PolicyMethod(&pinned)}, nil)
	if !errors.Is(err, mapmatched.ErrStaleIndex) {
		t.Errorf("vectors of another revision: %v", err)
	}
}

// Texts are embedded once, also over two runs.
func TestEmbedCache(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 4, Turns: 4})
	dir := filepath.Join(t.TempDir(), "vectors")
	first, texts := embedAll(t, d, dir)
	if n := texts.Load(); n != int64(len(d.Corpus.Chunks)) {
		t.Fatalf("%d texts, wanted %d", n, len(d.Corpus.Chunks))
	}
	w := worldOf(t, d, &WorldOptions{Vectors: first, Arm: ArmDense})
	if _, err := Measure(t.Context(), w, []Method{baseline(t, Pointwise), PolicyMethod(plain(t))}, &MeasureOptions{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	queries := map[string]bool{}
	for _, c := range d.Conversations {
		for _, turn := range c.Turns {
			queries[turn.Query] = true
		}
	}
	if n := texts.Load() - int64(len(d.Corpus.Chunks)); n != int64(len(queries)) {
		t.Errorf("%d queries were embedded, wanted %d", n, len(queries))
	}
	second, texts := embedAll(t, d, dir)
	if _, err := second.Embedder.Embed(t.Context(), []string{d.Conversations[0].Turns[0].Query}); err != nil || texts.Load() != 0 {
		t.Errorf("a second run embeds %d texts: %v", texts.Load(), err)
	}
	for id, v := range first.Chunks {
		if !slices.Equal(v, second.Chunks[id]) {
			t.Fatalf("chunk %s has another vector from the cache", id)
		}
	}
	fault := errors.New("no model")
	if _, err := Embed(t.Context(), d, embedFunc(func([]string) ([][]float32, error) { return nil, fault }), hashIdentity, "", nil); !errors.Is(err, fault) {
		t.Errorf("error %v", err)
	}
	for _, bad := range [][][]float32{{}, {{1}, {1, 2}}, {{}}, {{0, 0}}, {{float32(math.NaN()), 1}}} {
		_, err := Embed(t.Context(), d, embedFunc(func(texts []string) ([][]float32, error) {
			out := slices.Repeat([][]float32{{1, 0}}, len(texts))
			return slices.Concat(bad, out)[:max(len(texts)-1+min(len(bad), 1), 0)], nil
		}), hashIdentity, "", nil)
		if err == nil {
			t.Errorf("vectors that begin with %v are taken", bad)
		}
	}
}

// embedFunc is an embedder that is a function.
type embedFunc func(texts []string) ([][]float32, error)

func (f embedFunc) Embed(_ context.Context, texts []string) ([][]float32, error) { return f(texts) }

// matrix is vectors as a file has them.
type matrix struct {
	ids  []string
	rows [][]float32
}

func (m matrix) Len() int                           { return len(m.ids) }
func (m matrix) Dimension() int                     { return len(m.rows[0]) }
func (m matrix) ID(row int) string                  { return m.ids[row] }
func (m matrix) Row(row int, _ []float32) []float32 { return m.rows[row] }

// Vectors from files do without a model, except for texts that are not there.
func TestVectorsFromFiles(t *testing.T) {
	d := dataOf(t, menagerie(), Conversation{ID: "c/1", Turns: []Turn{{Query: "whale", Gold: golds("d1#0")}, {Query: "lion"}}})
	var v Vectors
	var ids []string
	var rows [][]float32
	for i := range d.Corpus.Chunks {
		ids = append(ids, d.Corpus.Chunks[i].ID)
		rows = append(rows, []float32{float32(i), 3})
	}
	if err := errors.Join(v.AddChunks(matrix{ids, rows}), v.AddTurns(matrix{[]string{"c/1/1", "c/1/2"}, [][]float32{{0, 2}, {1, 0}}})); err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, d, &WorldOptions{Vectors: &v, Arm: ArmDense})
	if got := fmt.Sprint(ranked(t, w, baseline(t, Pointwise), 3)); got != "[[d1#0 d1#1 d2#0] [d3#1 d3#0 d2#0]]" {
		t.Errorf("pointwise %s", got)
	}
	if got := ranked(t, w, baseline(t, DecayedHistory), 3); len(got[1]) != 3 {
		t.Errorf("decayed history %v", got)
	}
	if _, err := Measure(t.Context(), w, []Method{baseline(t, History)}, nil); err == nil || err.Error() != "method history: it embeds the questions so far, and there is no model to do so: give one, or leave the method out" {
		t.Errorf("a text that is not in the file: %v", err)
	}
	v.Turns = map[string][]float32{"c/1/1": {1, 0}}
	if _, err := NewWorld(d, &WorldOptions{Vectors: &v}); err == nil || !strings.Contains(err.Error(), `turn "c/1/2" has no vector`) {
		t.Errorf("a turn without a vector: %v", err)
	}
	if err := v.AddTurns(matrix{[]string{"x"}, [][]float32{{0, 0}}}); err == nil {
		t.Error("a query vector without a direction")
	}
	if err := v.AddChunk("x", []float32{1}); err == nil || !strings.Contains(err.Error(), "1 components, others 2") {
		t.Errorf("another dimension: %v", err)
	}
}

// Files of vectors are refused where a row would replace another or is of another
// model.
func TestVectorsThatClash(t *testing.T) {
	var v Vectors
	if err := v.AddChunks(matrix{[]string{"a", "b"}, [][]float32{{1, 0}, {0, 1}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{v.AddChunk("a", []float32{0, 1}), `there are two vectors of chunk "a"`},
		{v.AddTurns(matrix{[]string{"c/1", "c/2", "c/1"}, [][]float32{{1, 0}, {0, 1}, {1, 1}}}), `there are two vectors of turn "c/1"`},
		{v.AddTurns(matrix{[]string{"c/3"}, [][]float32{{1, 0, 0}}}), `turn "c/3" has 3 components, others 2`},
		{v.AddTurns(matrix{[]string{"c/4"}, [][]float32{{0, 0}}}), "all zero"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, wanted %q", c.err, c.want)
		}
	}
	if v.Chunks["a"][0] != 1 || v.Turns["c/1"][0] != 1 || len(v.Turns) != 2 {
		t.Errorf("chunks %v, turns %v", v.Chunks, v.Turns)
	}
}

// Vectors that are given in files do as those that the model makes, when it makes
// the rest.
func TestEmbedOthers(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 4, Turns: 4})
	all, _ := embedAll(t, d, "")
	var ids []string
	var texts []string
	for _, c := range d.Conversations {
		for i := range c.Turns {
			ids, texts = append(ids, TurnID(c.ID, i)), append(texts, c.Turns[i].Query)
		}
	}
	rows, err := hashing{24, &atomic.Int64{}}.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	v := &Vectors{Identity: policy.VectorIdentity{Provider: "file", Model: "v.npy", Revision: "r"}, Chunks: all.Chunks}
	if err := v.AddTurns(matrix{ids, rows}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	similarity, err := v.EmbedOthers(t.Context(), d, hashing{24, &atomic.Int64{}}, hashIdentity, dir)
	if err != nil || similarity < 0.999 {
		t.Fatalf("similarity %v: %v", similarity, err)
	}
	if id := v.Identity; id.Model != "v.npy, other texts by test hashing" || id.Revision != "r, 1" || id.Dimension != 24 {
		t.Errorf("identity %+v", id)
	}
	answering := *plain(t)
	answering.Name, answering.StatedDigest, answering.Evidence = "answering", "", ""
	answering.Arms.Stage, answering.Arms.Answer.Enabled, answering.Arms.Feedback.Enabled = policy.StageActive, true, true
	answering.Arms.History.Enabled = false // faded as one text, or as vectors where there are some
	for _, arm := range []Arm{ArmDense, ArmHybrid} {
		for _, m := range []Method{baseline(t, Pointwise), baseline(t, History), PolicyMethod(&answering)} {
			for i := range d.Conversations {
				got, err := m.Rank(t.Context(), worldOf(t, d, &WorldOptions{Vectors: v, Arm: arm}), &d.Conversations[i], 5)
				if err != nil {
					t.Fatalf("%s: %v", arm, err)
				}
				want, err := m.Rank(t.Context(), worldOf(t, d, &WorldOptions{Vectors: all, Arm: arm}), &d.Conversations[i], 5)
				if err != nil {
					t.Fatalf("%s: %v", arm, err)
				}
				for k := range got {
					if !slices.Equal(got[k].ChunkIDs, want[k].ChunkIDs) {
						t.Fatalf("%s, %s, conversation %d, turn %d: %v, the model alone finds %v", arm, m.Name, i, k+1, got[k].ChunkIDs, want[k].ChunkIDs)
					}
				}
			}
		}
	}
	again := &atomic.Int64{}
	next := &Vectors{Chunks: v.Chunks, Turns: v.Turns}
	if _, err := next.EmbedOthers(t.Context(), d, hashing{24, again}, hashIdentity, dir); err != nil || again.Load() != 0 {
		t.Errorf("the question is embedded again: %d texts, %v", again.Load(), err)
	}
	if _, err := next.EmbedOthers(t.Context(), d, hashing{8, again}, policy.VectorIdentity{Model: "small"}, ""); err == nil || !strings.Contains(err.Error(), "8 components, those of the files 24") {
		t.Errorf("another dimension: %v", err)
	}
	fault := errors.New("no model")
	failing := embedFunc(func([]string) ([][]float32, error) { return nil, fault })
	if _, err := next.EmbedOthers(t.Context(), d, failing, hashIdentity, ""); !errors.Is(err, fault) {
		t.Errorf("a model that fails: %v", err)
	}
	none := &Vectors{Chunks: v.Chunks}
	if similarity, err := none.EmbedOthers(t.Context(), d, failing, hashIdentity, ""); err != nil || similarity != 1 {
		t.Errorf("without a question to compare: %v, %v", similarity, err)
	}
	turned := embedFunc(func(texts []string) ([][]float32, error) {
		return slices.Repeat([][]float32{append(make([]float32, 23), -1)}, len(texts)), nil
	})
	if similarity, err := next.EmbedOthers(t.Context(), d, turned, hashIdentity, ""); err != nil || similarity > 0.9 {
		t.Errorf("another model has similarity %v: %v", similarity, err)
	}
}
