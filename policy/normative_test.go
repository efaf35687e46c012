package policy

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
	"github.com/mapmatched/mmplug/mapmatched"
)

// This file has one test for each normative sentence on decay, fusion, words,
// chunks, vectors, reranking and activation, named after it. The properties
// behind them are tested at the formulas.

// line makes a chain of chunks a, b, c, … joined by edges of the given types.
func line(t *testing.T, types ...mapmatched.EdgeType) *EdgeList {
	t.Helper()
	var edges []mapmatched.Edge
	for i, typ := range types {
		edges = append(edges, mapmatched.Edge{From: string(rune('a' + i)), To: string(rune('b' + i)), Weight: 1, Type: typ})
	}
	return edgeList(t, edges)
}

func edgeList(t *testing.T, edges []mapmatched.Edge) *EdgeList {
	t.Helper()
	l, err := NewEdgeList(func(yield func(mapmatched.Edge, error) bool) {
		for _, e := range edges {
			if !yield(e, nil) {
				return
			}
		}
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// decayOf expands from a and returns the decay of each chunk reached.
func decayOf(t *testing.T, l *EdgeList, d Decay) map[string]float64 {
	t.Helper()
	reached, err := Expand(t.Context(), l, []string{"a"}, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]float64{}
	for _, r := range reached {
		m[r.ChunkID] = r.Decay
	}
	return m
}

func TestNormativeDecay(t *testing.T) {
	chain := func() *EdgeList { return line(t, "next", "next", "next", "next", "next") }
	w := 0.7
	t.Run("decay of a path is the product of the weights of its edges, 0.7 by default", func(t *testing.T) {
		got := decayOf(t, chain(), DefaultDecay())
		if got["b"] != w || got["c"] != w*w || got["d"] != w*w*w {
			t.Errorf("%v", got)
		}
		d := DefaultDecay()
		d.Weights = map[string]float64{"link": 0.5}
		if mixed := decayOf(t, line(t, "link", "next"), d); mixed["c"] != 0.5*w {
			t.Errorf("%v", mixed)
		}
	})
	t.Run("decay of the root is 1", func(t *testing.T) {
		if got := decayOf(t, chain(), DefaultDecay()); got["a"] != 1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("expansion ends at depth D", func(t *testing.T) {
		if got := decayOf(t, chain(), DefaultDecay()); len(got) != 4 || got["e"] != 0 {
			t.Errorf("%v reached within 3 edges", got)
		}
	})
	t.Run("0.7³ = 0.343 binds no floor of 0.05", func(t *testing.T) {
		if got := decayOf(t, chain(), DefaultDecay())["d"]; math.Abs(got-0.343) > 1e-15 || got < DefaultDecay().Floor {
			t.Errorf("%v", got)
		}
	})
	t.Run("paths with decay below the floor are not expanded", func(t *testing.T) {
		d := DefaultDecay()
		d.Floor = w * w
		if got := decayOf(t, chain(), d); got["c"] != w*w || got["d"] != 0 {
			t.Errorf("at the floor %v", got)
		}
	})
	// a reaches d over one weak edge and over b and c by strong ones.
	detour := edgeList(t, []mapmatched.Edge{
		{From: "a", To: "d", Weight: 1, Type: "weak"}, {From: "a", To: "b", Weight: 1, Type: "strong"},
		{From: "b", To: "c", Weight: 1, Type: "strong"}, {From: "c", To: "d", Weight: 1, Type: "strong"},
	})
	d := DefaultDecay()
	d.Weights = map[string]float64{"weak": 0.1, "strong": 0.9}
	t.Run("decay_v1 is the best path of the hop count that reaches the node first", func(t *testing.T) {
		if got := decayOf(t, detour, d)["d"]; got != 0.1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("decay_exact_v1 is the true maximum", func(t *testing.T) {
		exact := d
		exact.Version = DecayExactV1
		if got := decayOf(t, detour, exact)["d"]; math.Abs(got-0.729) > 1e-15 {
			t.Errorf("%v", got)
		}
	})
	t.Run("a debug report says where the two differ", func(t *testing.T) {
		diff, err := CompareDecay(t.Context(), detour, []string{"a"}, d, nil)
		if err != nil || len(diff) != 1 || diff[0].ChunkID != "d" {
			t.Errorf("%v (%v)", diff, err)
		}
	})
}

func TestNormativeGeometric(t *testing.T) {
	u := DefaultFusion()
	score := func(t *testing.T, q GeometricQuery, c GeometricChunk) float64 {
		t.Helper()
		s, parts, err := u.GeometricScore(q, c)
		if err != nil || len(parts) == 0 {
			t.Fatalf("parts %v (%v)", parts, err)
		}
		return s
	}
	both := GeometricQuery{Vector: true, Expanded: true}
	t.Run("S is sim^α · decay^(1−α), α = 0.6", func(t *testing.T) {
		if got, want := score(t, both, GeometricChunk{Similarity: new(0.5), Decay: 0.25}), math.Pow(0.5, 0.6)*math.Pow(0.25, 0.4); math.Abs(got-want) > 1e-15 {
			t.Errorf("%v, want %v", got, want)
		}
	})
	t.Run("a query may override α in [0, 1]", func(t *testing.T) {
		q := both
		q.Alpha = new(0.5)
		if got := score(t, q, GeometricChunk{Similarity: new(0.25), Decay: 1}); got != 0.5 {
			t.Errorf("%v", got)
		}
		q.Alpha = new(1.1)
		if _, _, err := u.GeometricScore(q, GeometricChunk{Similarity: new(0.25), Decay: 1}); err == nil {
			t.Error("α 1.1 was accepted")
		}
	})
	t.Run("sim is the cosine clamped to [0, 1]", func(t *testing.T) {
		if low, high := score(t, both, GeometricChunk{Similarity: new(-0.5), Decay: 1}), score(t, both, GeometricChunk{Similarity: new(1.5), Decay: 1}); low != 0 || high != 1 {
			t.Errorf("%v and %v", low, high)
		}
	})
	t.Run("α = 0 is decay and α = 1 is sim, before any power", func(t *testing.T) {
		if got := Geometric(0, 0.3, 0); got != 0.3 {
			t.Errorf("α = 0 with sim 0: %v", got)
		}
		if got := Geometric(0.1, math.SmallestNonzeroFloat64, 1); got != 0.1 {
			t.Errorf("α = 1 with a tiny decay: %v", got)
		}
	})
	t.Run("without a vector clause S is decay", func(t *testing.T) {
		if got := score(t, GeometricQuery{Expanded: true}, GeometricChunk{Decay: 0.49}); got != 0.49 {
			t.Errorf("%v", got)
		}
	})
	t.Run("a node without embedding has sim = min_score", func(t *testing.T) {
		if got := score(t, both, GeometricChunk{Decay: 1}); got != 0 {
			t.Errorf("%v by default", got)
		}
		u := DefaultFusion()
		u.MinScore = 0.25
		if got, _, err := u.GeometricScore(GeometricQuery{Vector: true, Expanded: true, Alpha: new(0.5)}, GeometricChunk{Decay: 1}); err != nil || got != 0.5 {
			t.Errorf("%v (%v)", got, err)
		}
	})
	t.Run("without expansion S is sim and no decay is put in its place", func(t *testing.T) {
		s, parts, err := u.GeometricScore(GeometricQuery{Vector: true}, GeometricChunk{Similarity: new(0.4)})
		if _, given := parts[PartDecay]; err != nil || s != 0.4 || given {
			t.Errorf("%v, %v (%v)", s, parts, err)
		}
	})
	t.Run("primaries are never fused", func(t *testing.T) {
		if got := score(t, both, GeometricChunk{Primary: true, Similarity: new(0.4), Decay: 0.5}); got != 0.4 {
			t.Errorf("%v", got)
		}
	})
	t.Run("S is in (0, 1], and 0 only where sim is 0", func(t *testing.T) {
		for sim := 0.0; sim <= 1; sim += 1.0 / 64 {
			for decay := 1.0 / 64; decay <= 1; decay += 1.0 / 64 {
				if s := Geometric(sim, decay, 0.6); !(s >= 0 && s <= 1) || (s == 0) != (sim == 0) {
					t.Fatalf("%v of %v and %v", s, sim, decay)
				}
			}
		}
	})
}

func TestNormativeFusion(t *testing.T) {
	u := DefaultFusion()
	fuse := func(t *testing.T, u Fusion, arms ...ArmList) string {
		t.Helper()
		got, err := u.Fuse(arms, 10)
		if err != nil {
			t.Fatal(err)
		}
		return scoreText(got)
	}
	t.Run("scores are min–max normalised within their arm and weighted 0.7 dense, 0.3 lexical", func(t *testing.T) {
		got := fuse(t, u, ArmList{ArmDense, list("a", 0.9, "b", 0.7, "c", 0.5)}, ArmList{ArmLexical, list("b", 12.0, "a", 4.0)})
		if got != "a 0.7, b 0.65, c 0" {
			t.Error(got)
		}
	})
	t.Run("one candidate, and all-equal scores, count 1", func(t *testing.T) {
		if got := fuse(t, u, ArmList{ArmDense, list("a", 0.0)}, ArmList{ArmLexical, list("b", 3.0, "c", 3.0)}); got != "a 0.7, b 0.3, c 0.3" {
			t.Error(got)
		}
	})
	t.Run("a candidate that is absent from an arm gets 0 from it", func(t *testing.T) {
		if got := fuse(t, u, ArmList{ArmDense, list("a", 2.0, "b", 1.0)}, ArmList{ArmLexical, list("c", 2.0, "b", 1.0)}); got != "a 0.7, c 0.3, b 0" {
			t.Error(got)
		}
	})
	t.Run("an empty arm contributes nothing and its weight is not redistributed", func(t *testing.T) {
		if got := fuse(t, u, ArmList{ArmDense, nil}, ArmList{ArmLexical, list("a", 2.0)}); got != "a 0.3" {
			t.Error(got)
		}
	})
	t.Run("duplicates inside an arm are removed first and the best rank is kept", func(t *testing.T) {
		if got := fuse(t, u, ArmList{ArmDense, list("a", 3.0, "b", 2.0, "a", 0.0, "c", 1.0)}); got != "a 0.7, b 0.35, c 0" {
			t.Error(got)
		}
	})
	t.Run("weights are finite, at least 0 and not all 0", func(t *testing.T) {
		for _, weights := range [][2]float64{{0, 0}, {-1, 2}, {math.NaN(), 1}, {math.Inf(1), 1}} {
			bad := DefaultFusion()
			bad.Arms = map[string]FusionArm{ArmDense: {weights[0], 0}, ArmLexical: {weights[1], 0}}
			if err := bad.Validate(); err == nil {
				t.Errorf("%v was accepted", weights)
			}
		}
	})
	t.Run("rrf_v1 is the sum of weight/(k + rank), rank from 1, k = 60", func(t *testing.T) {
		rrf := fusion(RRFV1, nil)
		got, err := rrf.Fuse([]ArmList{{ArmDense, list("a", 9.0, "b", 1.0)}, {ArmLexical, list("b", 5.0)}}, 10)
		if err != nil || got[0].ChunkID != "b" || math.Abs(got[0].Score-(0.7/62+0.3/61)) > 1e-17 || got[1].Score != 0.7/61 {
			t.Errorf("%s (%v)", scoreText(got), err)
		}
	})
	t.Run("order is by score descending, parent ID and ordinal", func(t *testing.T) {
		at := func(id, document string, ordinal int) mapmatched.Candidate {
			return mapmatched.Candidate{ChunkID: id, Score: 1, Metadata: map[string]any{MetadataDocument: document, MetadataOrdinal: ordinal}}
		}
		got := fuse(t, u, ArmList{ArmDense, []mapmatched.Candidate{at("1", "d2", 0), at("2", "d1", 1), at("3", "d1", 0)}})
		if got != "3 0.7, 2 0.7, 1 0.7" {
			t.Error(got)
		}
	})
	t.Run("a parent's score is its best chunk's, never the mean", func(t *testing.T) {
		in := list("a", 3.0, "b", 1.0)
		for i := range in {
			in[i].Metadata = map[string]any{MetadataDocument: "d"}
		}
		if got := ParentScores(in); len(got) != 1 || got[0] != (mapmatched.Scored{ChunkID: "d", Score: 3}) {
			t.Errorf("%v", got)
		}
	})
}

func TestNormativeLexical(t *testing.T) {
	analyzed := func(text string) string { return joined(lexical.Analyze(text)) }
	for name, c := range map[string][2]string{
		"text is brought to NFKC and lower case":   {"Ｆｕｌｌ Width ﬁre", "full width fire"},
		"CJK runs are overlapping pairs":           {"混合检索", "混合 合检 检索"},
		"a single CJK character is a term":         {"a 乡 b2", "乡 b2"},
		"other scripts are cut at word boundaries": {"élan-vital, v1.2", "élan vital v1 2"},
		"stopwords are left out":                   {"the renewal of it", "renewal"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := analyzed(c[0]); got != c[1] {
				t.Errorf("%q, want %q", got, c[1])
			}
		})
	}
	t.Run("the stopword list is pinned by its SHA-256", func(t *testing.T) {
		if DefaultStopwordsSHA256 != lexical.StopwordsSHA256 {
			t.Error("the policy pins another list than the index uses")
		}
	})
	t.Run("idf is ln(1 + (N − n + 0.5)/(n + 0.5)), k1 = 1.2, b = 0.75", func(t *testing.T) {
		if got, want := lexical.IDF(10, 3), math.Log(1+7.5/3.5); math.Abs(got-want) > 1e-15 {
			t.Errorf("%v, want %v", got, want)
		}
		if d := DefaultLexical(); d.K1 != lexical.K1 || d.B != lexical.B {
			t.Errorf("%+v", d)
		}
	})
	find := func(t *testing.T, chunks []mapmatched.Chunk, text string) []string {
		t.Helper()
		dir := t.TempDir() + "/index"
		if err := embedded.Write(t.Context(), dir, embedded.Input{Chunks: chunks}, nil); err != nil {
			t.Fatal(err)
		}
		x, err := embedded.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close() //nolint:errcheck // only read
		found, err := x.Candidates(t.Context(), mapmatched.Query{Text: text}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return chunkIDs(found)
	}
	one := []mapmatched.Chunk{{ID: "a", Text: "tides"}, {ID: "b", Text: "故乡的月亮"}}
	t.Run("chunks without score are not returned", func(t *testing.T) {
		if got := find(t, one, "tides"); joined(got) != "a" {
			t.Error(got)
		}
		if got := find(t, one, "故乡"); joined(got) != "b" {
			t.Error(got)
		}
	})
	t.Run("an empty corpus or query has no candidates and no error", func(t *testing.T) {
		if a, b, c := find(t, nil, "tides"), find(t, one, ""), find(t, one, "of the"); len(a)+len(b)+len(c) > 0 {
			t.Error(a, b, c)
		}
	})
}

func TestNormativeChunking(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"version":"1.0","model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"b":2}},
"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"added_tokens":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	cut := func(t *testing.T, text string, limit int) []mapmatched.Chunk {
		t.Helper()
		c, err := graphbuild.ChunkPara(graphbuild.Document{ID: "d", Text: text}, tok, &graphbuild.TokenOptions{Limit: limit, IDPrefix: "p-"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Chunks
	}
	texts := func(chunks []mapmatched.Chunk) string {
		var list []string
		for _, c := range chunks {
			list = append(list, c.Text)
		}
		return strings.Join(list, "|")
	}
	t.Run("whole paragraphs are packed greedily up to the limit", func(t *testing.T) {
		if got := texts(cut(t, "a b\nb a\na\n", 4)); got != "a b\nb a\n|a\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("a paragraph over the limit is cut into windows without overlap", func(t *testing.T) {
		if got := texts(cut(t, "a b a b a\nb", 2)); got != "a b |a b |a\n|b" && got != "a b| a b| a\n|b" {
			t.Errorf("%q", got)
		}
	})
	t.Run("every byte is in exactly one chunk and no rune is cut", func(t *testing.T) {
		text := strings.Repeat("äöü🚀混合检索 a\n", 50)
		for _, limit := range []int{1, 2, 7, 512} {
			end := 0
			for _, c := range cut(t, text, limit) {
				if c.Start != end || text[c.Start:c.End] != c.Text || strings.ToValidUTF8(c.Text, "") != c.Text {
					t.Fatalf("limit %d: chunk at %d to %d after %d", limit, c.Start, c.End, end)
				}
				end = c.End
			}
			if end != len(text) {
				t.Errorf("limit %d: the chunks end at %d of %d", limit, end, len(text))
			}
		}
	})
	t.Run("the chunk ID is the prefix and a hash of parent, record digest and ordinal", func(t *testing.T) {
		got := cut(t, "a\nb\n", 1)[1].ID
		if other := graphbuild.HashedChunkID("p-", "d", "another digest", 1); got == other || !strings.HasPrefix(got, "p-") {
			t.Errorf("%q", got)
		}
	})
	t.Run("limit, tokenizer and its SHA-256 are part of the policy", func(t *testing.T) {
		base := Chunking{M7ChunkPreV1, 512, UnitTokens, "t.json", strings.Repeat("ab", 32)}
		digest := newPolicy(func(p *Policy) { p.Chunking = base }).Digest()
		for _, change := range []func(c *Chunking){
			func(c *Chunking) { c.Limit = 256 }, func(c *Chunking) { c.Tokenizer = "u.json" },
			func(c *Chunking) { c.TokenizerSHA256 = strings.Repeat("cd", 32) }, func(c *Chunking) { c.Version = FixedV1 },
		} {
			other := base
			change(&other)
			if newPolicy(func(p *Policy) { p.Chunking = other }).Digest() == digest {
				t.Errorf("%+v has the digest of %+v", other, base)
			}
		}
	})
}

func TestNormativeVectorIdentity(t *testing.T) {
	t.Run("queries have at most 256 tokens unless the policy says otherwise", func(t *testing.T) {
		if got := DefaultVectors().MaxQueryTokens; got != 256 {
			t.Error(got)
		}
	})
	t.Run("rows are normalised to unit length", func(t *testing.T) {
		v := DefaultVectors()
		if v.Normalization = "none"; v.Validate() == nil {
			t.Error("vectors that are not normalised are accepted")
		}
	})
	t.Run("vectors of different identities are never mixed", func(t *testing.T) {
		p := newPolicy(func(p *Policy) { p.Vectors = Vectors{"onnx", "e5", "1", 8, NormalizationL2, 256} })
		err := p.Fits(IndexIdentity{Vectors: &VectorIdentity{"onnx", "e5", "2", 8, NormalizationL2}})
		if !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), `vectors.revision is "2", the policy says "1"`) {
			t.Error(err)
		}
	})
}

func TestNormativeRerank(t *testing.T) {
	given := list("a", 3.0, "b", 2.0)
	reverse := rerankBy(func(c mapmatched.Candidate) float64 { return -c.Score })
	run := func(t *testing.T, r mapmatched.Reranker, mode RerankMode, in []mapmatched.Candidate) (string, RerankRecord, <-chan RerankResult) {
		t.Helper()
		p := DefaultRerank()
		p.Mode = mode
		order, record, later := Rerank(t.Context(), r, mapmatched.Query{}, in, p)
		return joined(chunkIDs(order)), record, later
	}
	t.Run("off keeps the order", func(t *testing.T) {
		if order, record, _ := run(t, reverse, RerankOff, given); order != "a b" || record.Outcome != RerankedOff {
			t.Error(order, record)
		}
	})
	t.Run("sync takes the order within a budget of 500 ms for 50 pairs", func(t *testing.T) {
		if order, _, _ := run(t, reverse, RerankSync, given); order != "b a" {
			t.Error(order)
		}
		if p := DefaultRerank(); p.BudgetMS != 500 || p.Pairs != 50 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("deferred delivers the result beside the answer", func(t *testing.T) {
		order, _, later := run(t, reverse, RerankDeferred, given)
		if beside := <-later; order != "a b" || joined(chunkIDs(beside.Order)) != "b a" {
			t.Error(order, beside)
		}
	})
	for name, r := range map[string]mapmatched.Reranker{
		"a crash keeps the order":           rerankBy(func(mapmatched.Candidate) float64 { panic("out of memory") }),
		"NaN keeps the order":               rerankBy(func(mapmatched.Candidate) float64 { return math.NaN() }),
		"wrong IDs keep the order":          answers{{ChunkID: "a", Score: 1}, {ChunkID: "x", Score: 2}},
		"missing answers keep the order":    answers{{ChunkID: "a", Score: 1}},
		"an answer given twice keeps it":    answers{{ChunkID: "a", Score: 1}, {ChunkID: "a", Score: 2}},
		"a reranker that is not there, too": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if order, record, _ := run(t, r, RerankSync, given); order != "a b" || record.Outcome != RerankedKept || record.Reason == "" {
				t.Error(order, record)
			}
		})
	}
	t.Run("a timeout keeps the order", func(t *testing.T) {
		p := DefaultRerank()
		p.Mode, p.BudgetMS = RerankSync, 1
		order, record, _ := Rerank(t.Context(), sleeper{}, mapmatched.Query{}, given, p)
		if joined(chunkIDs(order)) != "a b" || record.Reason != "no answer within "+time.Millisecond.String() {
			t.Error(chunkIDs(order), record)
		}
	})
	t.Run("a reranker is never called for an empty turn", func(t *testing.T) {
		if _, record, _ := run(t, rerankBy(func(mapmatched.Candidate) float64 { t.Error("called"); return 0 }), RerankSync, nil); record.Outcome != RerankedEmpty {
			t.Error(record)
		}
	})
}

// answers is a reranker that always says the same.
type answers []mapmatched.Scored

func (a answers) Rerank(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	return a, nil
}

// sleeper is a reranker that waits for its context.
type sleeper struct{}

func (sleeper) Rerank(ctx context.Context, _ mapmatched.Query, _ []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNormativeActivation(t *testing.T) {
	p := DefaultActivation()
	play := func(t *testing.T, confidences ...float64) string {
		t.Helper()
		var state ActivationState
		var got []string
		for i, c := range confidences {
			d, err := p.Step(state, i, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			state = d.State
			got = append(got, string(state.Activation))
		}
		return joined(got)
	}
	t.Run("it suppresses, prefetches or emits by two thresholds, 0.62 and 0.52", func(t *testing.T) {
		if got := play(t, 0.51); got != "suppress" {
			t.Error(got)
		}
		if got := play(t, 0.52); got != "prefetch" {
			t.Error(got)
		}
		if got := play(t, 0.62); got != "emit" {
			t.Error(got)
		}
	})
	t.Run("hysteresis: what emits goes on down to t_off", func(t *testing.T) {
		if got := play(t, 0.62, 0.52, 0.51); got != "emit emit suppress" {
			t.Error(got)
		}
	})
	t.Run("the cooldown counts observations", func(t *testing.T) {
		if got := play(t, 0.9, 0.1, 0.9, 0.9, 0.9); got != "emit suppress prefetch prefetch emit" {
			t.Error(got)
		}
	})
	t.Run("the default is shadow: no effect on results", func(t *testing.T) {
		d, err := p.Step(ActivationState{}, 0, 0.1, nil)
		if err != nil || p.Stage != StageShadow || d.Applied != Emit {
			t.Error(d, err)
		}
	})
	t.Run("the log has grouped features", func(t *testing.T) {
		features := Features{"emission": {"entropy": 1}}
		d, err := p.Step(ActivationState{}, 0, 0.1, features)
		if err != nil || asJSON(t, d.ShadowRecord("").Features) != asJSON(t, features) {
			t.Error(d, err)
		}
	})
	t.Run("every policy stage is off, shadow or active", func(t *testing.T) {
		for _, key := range []string{"arms.stage", "arms.gate.stage", "transition.stage", "decay.stage", "activation.stage", "clustering.stage"} {
			if got := keyDocs()[key].choices(); !slices.Equal(got, []any{"off", "shadow", "active"}) {
				t.Errorf("%s: %v", key, got)
			}
		}
	})
}
