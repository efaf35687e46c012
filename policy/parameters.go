package policy

import (
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// This file holds one struct for each section of a policy. Every struct has a
// function that returns its defaults and a method Validate that reports every
// fault, each a [*Fault] with the path of the key. A table whose keys the
// writer chooses (fusion.arms, decay.weights, graph.weights, transition.p and
// transition.q) counts as one value: a policy that gives it replaces the whole
// default.

// Stage says how far a part of the policy goes.
type Stage string

// The stages.
const (
	StageOff    Stage = "off"    // not computed
	StageShadow Stage = "shadow" // computed and logged, without effect on results
	StageActive Stage = "active" // computed, logged and in effect
)

// Decode is the section "decode": the objective and its search.
type Decode struct {
	// Version is the tag of the objective: decode_v1.
	Version string `koanf:"version" json:"version"`
	// EmissionWeight λ multiplies normalised scores. Finite, ≥ 0; default 1;
	// 0 leaves the path to the transitions.
	EmissionWeight float64 `koanf:"emission_weight" json:"emission_weight"`
	// TransitionWeight β multiplies transition costs. Finite, ≥ 0; default 1;
	// 0 decides every turn alone.
	TransitionWeight float64 `koanf:"transition_weight" json:"transition_weight"`
	// ScoreNormalization of a turn's raw scores: zscore (default), center or none.
	ScoreNormalization mapmatched.Normalization `koanf:"score_normalization" json:"score_normalization"`
	// FixedLag L, in turns, commits turn t−L after turn t. ≥ 0; default null,
	// which is full decoding; 0 commits every turn at once.
	FixedLag *int `koanf:"fixed_lag" json:"fixed_lag"`
	// CandidateLimit is how many candidates of a turn count. ≥ 1; default 20.
	CandidateLimit int `koanf:"candidate_limit" json:"candidate_limit"`
	// Beam is how many candidates of a turn may be continued. ≥ 0; default 0,
	// which is all of them.
	Beam int `koanf:"beam" json:"beam"`
	// BreakDistance is the graph distance from which on no predecessor counts
	// as connected. Finite, ≥ 0; default 0, which never breaks the path.
	BreakDistance float64 `koanf:"break_distance" json:"break_distance"`
	// OnEmpty is what a turn without candidates does: gap (default) or error.
	OnEmpty mapmatched.OnEmpty `koanf:"on_empty" json:"on_empty"`
	// Temperature τ of the path posterior, in units of the path score.
	// Between 1e-6 and 1e6; default 1.
	Temperature float64 `koanf:"temperature" json:"temperature"`
	// RankBy orders the candidates of a turn: max_marginal (default), by the
	// best path that ends in each, or filtered_posterior, by its probability
	// given the turns so far.
	RankBy mapmatched.RankBy `koanf:"rank_by" json:"rank_by"`
}

// DefaultDecode returns the defaults of the section "decode".
func DefaultDecode() Decode {
	return Decode{
		Version: DecodeV1, EmissionWeight: 1, TransitionWeight: 1, ScoreNormalization: mapmatched.NormalizeZScore,
		CandidateLimit: mapmatched.DefaultCandidateLimit, OnEmpty: mapmatched.OnEmptyGap, Temperature: 1, RankBy: mapmatched.RankByMaxMarginal,
	}
}

// Validate reports every fault of the section.
func (d *Decode) Validate() error {
	f := faults{section: "decode"}
	f.version(KindDecode, d.Version)
	f.notNegative("emission_weight", d.EmissionWeight)
	f.notNegative("transition_weight", d.TransitionWeight)
	oneOf(&f, "score_normalization", d.ScoreNormalization, mapmatched.NormalizeZScore, mapmatched.NormalizeCenter, mapmatched.NormalizeNone)
	if d.FixedLag != nil && *d.FixedLag < 0 {
		f.add("fixed_lag", *d.FixedLag, "at least 0, or null for full decoding")
	}
	f.count("candidate_limit", d.CandidateLimit, 1)
	f.count("beam", d.Beam, 0)
	f.notNegative("break_distance", d.BreakDistance)
	oneOf(&f, "on_empty", d.OnEmpty, mapmatched.OnEmptyGap, mapmatched.OnEmptyError)
	f.within("temperature", d.Temperature, 1e-6, 1e6)
	oneOf(&f, "rank_by", d.RankBy, mapmatched.RankByMaxMarginal, mapmatched.RankByFilteredPosterior)
	return f.err()
}

// Context is the section "context": which chunks accompany the decoded one.
type Context struct {
	// Radius around the decoded chunk, in graph distance. Finite, ≥ 0;
	// default 1; 0 adds only chunks at distance 0, of which there are none.
	Radius float64 `koanf:"radius" json:"radius"`
	// Limit is the most chunks of a context. ≥ 0; default null, which is no
	// limit; 0 gives no context at all.
	Limit *int `koanf:"limit" json:"limit"`
}

// DefaultContext returns the defaults of the section "context".
func DefaultContext() Context { return Context{Radius: mapmatched.DefaultContextRadius} }

// Validate reports every fault of the section.
func (c *Context) Validate() error {
	f := faults{section: "context"}
	f.notNegative("radius", c.Radius)
	if c.Limit != nil && *c.Limit < 0 {
		f.add("limit", *c.Limit, "at least 0, or null for no limit")
	}
	return f.err()
}

// Arms is the section "arms": what of the conversation a turn is searched
// with. When its stage is off a turn is searched with its own words only.
type Arms struct {
	// Version is the tag of the formula: context_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default), shadow or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// Raw is the query of the turn. Default enabled with weight 1.
	Raw Arm `koanf:"raw" json:"raw"`
	// History is the query of the turn together with the earlier ones, faded
	// by Gamma. Default enabled with weight 1.
	History Arm `koanf:"history" json:"history"`
	// Answer is the assistant's last reply, when the caller passes it. Default
	// disabled with weight 0.25.
	Answer Arm `koanf:"answer" json:"answer"`
	// Feedback is the title and the salient terms of the chunk decoded for the
	// turn before. Default disabled with weight 0.25.
	Feedback Arm `koanf:"feedback" json:"feedback"`
	// Gamma γ is what the words of a query fade by with every turn that has
	// passed. Between 0 and 1; default 0.5; 0 forgets earlier turns at once.
	Gamma float64 `koanf:"gamma" json:"gamma"`
	// FeedbackTerms is how many salient terms of a chunk are fed back, beside
	// its title. ≥ 0; default 8; 0 feeds back the title only.
	FeedbackTerms int `koanf:"feedback_terms" json:"feedback_terms"`
	// Gate decides turn by turn how much the context counts.
	Gate Gate `koanf:"gate" json:"gate"`
}

// Arm is one of the sections "arms.raw", "arms.history", "arms.answer" and
// "arms.feedback".
type Arm struct {
	// Enabled says whether the arm takes part.
	Enabled bool `koanf:"enabled" json:"enabled"`
	// Weight of a term of the arm, or of its candidate list. Finite, ≥ 0, and
	// above 0 for an arm that is enabled.
	Weight float64 `koanf:"weight" json:"weight"`
}

// Gate is the section "arms.gate": g = 1/(1 + e^−z) with
//
//	z = bias + terms·n + idf·i + referring·r + entropy·H
//
// for a query with n content terms whose idf sum to i, a share r of referring
// words, and an emission entropy H (nats) of its raw candidates. All weights
// are finite, of either sign, and 0 by default, which leaves a feature out.
type Gate struct {
	// Stage: off (default; g is 1 from the second turn on), shadow or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// Bias is z when every feature is 0.
	Bias float64 `koanf:"bias" json:"bias"`
	// Terms weighs the number of content terms.
	Terms float64 `koanf:"terms" json:"terms"`
	// IDF weighs the sum of their inverse document frequencies.
	IDF float64 `koanf:"idf" json:"idf"`
	// Referring weighs the share of referring words, in [0, 1].
	Referring float64 `koanf:"referring" json:"referring"`
	// Entropy weighs the emission entropy of the raw candidates, in nats.
	Entropy float64 `koanf:"entropy" json:"entropy"`
	// ScaleTransition makes the transition cost of the turn β·g instead of β.
	// Default false.
	ScaleTransition bool `koanf:"scale_transition" json:"scale_transition"`
}

// DefaultArms returns the defaults of the section "arms".
func DefaultArms() Arms {
	return Arms{
		Version: ContextV1, Stage: StageOff,
		Raw: Arm{true, 1}, History: Arm{true, 1}, Answer: Arm{false, 0.25}, Feedback: Arm{false, 0.25},
		Gamma: 0.5, FeedbackTerms: 8, Gate: Gate{Stage: StageOff},
	}
}

// Validate reports every fault of the section.
func (a *Arms) Validate() error {
	f := faults{section: "arms"}
	f.version(KindContext, a.Version)
	f.stage("stage", a.Stage)
	enabled := false
	for _, arm := range []struct {
		name string
		Arm
	}{{"raw", a.Raw}, {"history", a.History}, {"answer", a.Answer}, {"feedback", a.Feedback}} {
		enabled = enabled || arm.Enabled
		if arm.Enabled && arm.Weight == 0 {
			f.add(arm.name+".weight", arm.Weight, "above 0, or arms.%s.enabled false", arm.name)
		} else {
			f.notNegative(arm.name+".weight", arm.Weight)
		}
	}
	if !enabled {
		f.add("raw.enabled", false, "true unless another arm is enabled")
	}
	f.within("gamma", a.Gamma, 0, 1)
	f.count("feedback_terms", a.FeedbackTerms, 0)
	f.stage("gate.stage", a.Gate.Stage)
	f.finite("gate.bias", a.Gate.Bias)
	f.finite("gate.terms", a.Gate.Terms)
	f.finite("gate.idf", a.Gate.IDF)
	f.finite("gate.referring", a.Gate.Referring)
	f.finite("gate.entropy", a.Gate.Entropy)
	return f.err()
}

// Transition is the section "transition": what a kind of move costs.
type Transition struct {
	// Version is the tag of the formula: transition_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default; the cost is the graph distance), shadow or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// P is how often conversations make each move: stay, next, previous,
	// section, document, jump, or an edge type. Each above 0 and at most 1,
	// together 1 within 0.001. Empty by default, required in shadow and active.
	P map[string]float64 `koanf:"p" json:"p"`
	// Q is how often each move would happen if the next chunk were drawn
	// evenly from its candidates. The moves of P, and the same bounds.
	Q map[string]float64 `koanf:"q" json:"q"`
	// KeepDistance adds the cost of the move to the graph distance instead of
	// putting it in its place. Default false.
	KeepDistance bool `koanf:"keep_distance" json:"keep_distance"`
}

// DefaultTransition returns the defaults of the section "transition".
func DefaultTransition() Transition {
	return Transition{Version: TransitionV1, Stage: StageOff, P: map[string]float64{}, Q: map[string]float64{}}
}

// Validate reports every fault of the section.
func (t *Transition) Validate() error {
	f := faults{section: "transition"}
	f.version(KindTransition, t.Version)
	f.stage("stage", t.Stage)
	for _, table := range []struct {
		key          string
		moves, other map[string]float64
		otherKey     string
	}{{"p", t.P, t.Q, "q"}, {"q", t.Q, t.P, "p"}} {
		sum := 0.0
		for _, move := range sortedKeys(table.moves) {
			share := table.moves[move]
			if !(share > 0 && share <= 1) {
				f.add(table.key+"."+move, share, "above 0 and at most 1")
			}
			if _, both := table.other[move]; !both {
				f.add(table.key+"."+move, share, "left out, or given in transition.%s too", table.otherKey)
			}
			sum += share
		}
		if len(table.moves) > 0 {
			if math.Abs(sum-1) > 1e-3 {
				f.add(table.key, fmt.Sprintf("a table that sums to %v", sum), "shares that sum to 1")
			}
			if _, jump := table.moves[string(MoveJump)]; !jump {
				f.add(table.key, "a table without jump", "a table with jump, the move that is no other")
			}
		}
	}
	if len(t.P) == 0 && t.Stage != StageOff {
		f.add("p", "empty", "given, with transition.q, when transition.stage is %s", t.Stage)
	}
	return f.err()
}

// Decay is the section "decay": what a chunk loses with its distance from a
// hit when results are expanded along the graph.
type Decay struct {
	// Version is decay_v1 (default) or decay_exact_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default; results are not expanded), shadow or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// DefaultWeight is what remains after an edge whose type is not in
	// Weights. Above 0 and at most 1; default 0.7; 1 loses nothing.
	DefaultWeight float64 `koanf:"default_weight" json:"default_weight"`
	// Weights is what remains after an edge, by edge type. Above 0 and at
	// most 1; empty by default.
	Weights map[string]float64 `koanf:"weights" json:"weights"`
	// Depth D is the most edges from a hit. ≥ 0; default 3; 0 expands nothing.
	Depth int `koanf:"depth" json:"depth"`
	// Floor ε: a path whose decay is below it is not followed. Between 0 and
	// 1; default 0.05; 0 follows every path.
	Floor float64 `koanf:"floor" json:"floor"`
}

// DefaultDecay returns the defaults of the section "decay".
func DefaultDecay() Decay {
	return Decay{Version: DecayV1, Stage: StageOff, DefaultWeight: 0.7, Weights: map[string]float64{}, Depth: 3, Floor: 0.05}
}

// Validate reports every fault of the section.
func (d *Decay) Validate() error {
	f := faults{section: "decay"}
	f.version(KindDecay, d.Version)
	f.stage("stage", d.Stage)
	weight := func(key string, w float64) {
		if !(w > 0 && w <= 1) {
			f.add(key, w, "above 0 and at most 1")
		}
	}
	weight("default_weight", d.DefaultWeight)
	for _, edge := range sortedKeys(d.Weights) {
		weight("weights."+edge, d.Weights[edge])
	}
	f.count("depth", d.Depth, 0)
	f.within("floor", d.Floor, 0, 1)
	return f.err()
}

// Fusion is the section "fusion": how scores of several sources become one.
type Fusion struct {
	// Version is hybrid_fusion_pre_v1 (default) or rrf_v1, which fuse arms, or
	// geometric_v1, which fuses the similarity of a chunk with its decay.
	Version string `koanf:"version" json:"version"`
	// Alpha α is the share of the similarity in geometric_v1. Between 0
	// (decay alone) and 1 (similarity alone); default 0.6. A query may
	// override it.
	Alpha float64 `koanf:"alpha" json:"alpha"`
	// MinScore is the similarity in geometric_v1 of a chunk without a vector.
	// Between 0 and 1; default 0, which drops such a chunk to score 0.
	MinScore float64 `koanf:"min_score" json:"min_score"`
	// K of rrf_v1, in ranks. Finite, ≥ 0; default 60; 0 makes the first rank
	// count twice the second.
	K float64 `koanf:"k" json:"k"`
	// Arms are the candidate lists that are fused, by name. At least one; the
	// default is dense with weight 0.7 and lexical with weight 0.3.
	Arms map[string]FusionArm `koanf:"arms" json:"arms"`
}

// FusionArm is a table of "fusion.arms".
type FusionArm struct {
	// Weight of the arm. Finite, ≥ 0, and above 0 for at least one arm; 0
	// lists the arm without letting it count.
	Weight float64 `koanf:"weight" json:"weight"`
	// TimeoutMS is how long the arm may take, in milliseconds. ≥ 0; 0 waits
	// as long as the call may take; 1000 in the default arms.
	TimeoutMS int `koanf:"timeout_ms" json:"timeout_ms"`
}

// Names of the default arms.
const (
	ArmDense   = "dense"
	ArmLexical = "lexical"
)

// DefaultFusion returns the defaults of the section "fusion".
func DefaultFusion() Fusion {
	return Fusion{Version: HybridFusionPreV1, Alpha: 0.6, K: 60,
		Arms: map[string]FusionArm{ArmDense: {0.7, 1000}, ArmLexical: {0.3, 1000}}}
}

// Validate reports every fault of the section.
func (u *Fusion) Validate() error {
	f := faults{section: "fusion"}
	f.version(KindFusion, u.Version)
	f.within("alpha", u.Alpha, 0, 1)
	f.within("min_score", u.MinScore, 0, 1)
	f.notNegative("k", u.K)
	counts := false
	for _, name := range sortedKeys(u.Arms) {
		arm := u.Arms[name]
		if name == "" {
			f.add("arms", `a table with the name ""`, "tables with names")
		}
		f.notNegative("arms."+name+".weight", arm.Weight)
		f.count("arms."+name+".timeout_ms", arm.TimeoutMS, 0)
		counts = counts || arm.Weight != 0
	}
	switch {
	case len(u.Arms) == 0:
		f.add("arms", "empty", "at least one arm with a weight")
	case !counts:
		f.add("arms", "without a weight above 0", "arms of which at least one has a weight above 0")
	}
	return f.err()
}

// Lexical is the section "lexical": how words are cut and scored.
type Lexical struct {
	// Version is the tag of analysis and scoring: lexical_pre_v2.
	Version string `koanf:"version" json:"version"`
	// K1 says how soon further repeats of a term stop counting. Finite, ≥ 0;
	// default 1.2; 0 counts a term once.
	K1 float64 `koanf:"k1" json:"k1"`
	// B is how much the length of a chunk counts. Between 0 (not at all) and
	// 1; default 0.75.
	B float64 `koanf:"b" json:"b"`
	// StopwordsSHA256 pins the stopword list, one word a line. Default: the
	// list of the embedded index.
	StopwordsSHA256 string `koanf:"stopwords_sha256" json:"stopwords_sha256"`
}

// DefaultStopwordsSHA256 is the digest of the stopword list that the embedded
// index uses.
const DefaultStopwordsSHA256 = "d033eacb7c5635b42786e0551409ce2232828cd1365bda1e0fa42c447f27a160"

// DefaultLexical returns the defaults of the section "lexical".
func DefaultLexical() Lexical {
	return Lexical{Version: LexicalPreV2, K1: 1.2, B: 0.75, StopwordsSHA256: DefaultStopwordsSHA256}
}

// Validate reports every fault of the section.
func (l *Lexical) Validate() error {
	f := faults{section: "lexical"}
	f.version(KindLexical, l.Version)
	f.notNegative("k1", l.K1)
	f.within("b", l.B, 0, 1)
	f.sha256("stopwords_sha256", l.StopwordsSHA256)
	return f.err()
}

// Chunking is the section "chunking": how documents are cut.
type Chunking struct {
	// Version is markdown_v1 (default), m7_chunk_pre_v1 or fixed_v1. The
	// first cuts plain text and HTML too; the others cut the bytes of a file
	// as they are, which is Markdown and plain text only: HTML is left out.
	Version string `koanf:"version" json:"version"`
	// Limit is the most units of a chunk. ≥ 1; default 2000 (bytes).
	Limit int `koanf:"limit" json:"limit"`
	// Unit of Limit: bytes (default) or tokens of the pinned tokenizer.
	// m7_chunk_pre_v1 counts tokens, markdown_v1 counts bytes.
	Unit ChunkUnit `koanf:"unit" json:"unit"`
	// Tokenizer names the tokenizer; "" (default) where none is used.
	// Required when the unit is tokens.
	Tokenizer string `koanf:"tokenizer" json:"tokenizer"`
	// TokenizerSHA256 pins its file; "" (default) where none is used.
	TokenizerSHA256 string `koanf:"tokenizer_sha256" json:"tokenizer_sha256"`
}

// ChunkUnit is what the limit of a chunk counts.
type ChunkUnit string

// The units.
const (
	UnitBytes  ChunkUnit = "bytes"
	UnitTokens ChunkUnit = "tokens"
)

// DefaultChunking returns the defaults of the section "chunking".
func DefaultChunking() Chunking {
	return Chunking{Version: MarkdownV1, Limit: 2000, Unit: UnitBytes}
}

// Validate reports every fault of the section.
func (c *Chunking) Validate() error {
	f := faults{section: "chunking"}
	f.version(KindChunking, c.Version)
	f.count("limit", c.Limit, 1)
	oneOf(&f, "unit", c.Unit, UnitBytes, UnitTokens)
	switch {
	case c.Version == M7ChunkPreV1 && c.Unit == UnitBytes:
		f.add("unit", string(c.Unit), "tokens, which is what m7_chunk_pre_v1 counts")
	case c.Version == MarkdownV1 && c.Unit == UnitTokens:
		f.add("unit", string(c.Unit), "bytes, which is what markdown_v1 counts")
	}
	switch c.Unit {
	case UnitTokens:
		if c.Tokenizer == "" {
			f.add("tokenizer", c.Tokenizer, "the name of a tokenizer, because chunking.unit is tokens")
		}
		f.sha256("tokenizer_sha256", c.TokenizerSHA256)
	case UnitBytes:
		if c.Tokenizer != "" {
			f.add("tokenizer", c.Tokenizer, "empty, because chunking.unit is bytes")
		}
		if c.TokenizerSHA256 != "" {
			f.add("tokenizer_sha256", c.TokenizerSHA256, "empty, because chunking.unit is bytes")
		}
	}
	return f.err()
}

// Vectors is the section "vectors": what made the vectors of an index. With
// the default, an empty provider, there are none, and model, revision and
// dimension are empty as well.
type Vectors struct {
	// Provider that runs the model, such as onnx.
	Provider string `koanf:"provider" json:"provider"`
	// Model is its name.
	Model string `koanf:"model" json:"model"`
	// Revision is its version or digest.
	Revision string `koanf:"revision" json:"revision"`
	// Dimension is the number of components of a vector. ≥ 1; 0 (default)
	// only when there is no provider.
	Dimension int `koanf:"dimension" json:"dimension"`
	// Normalization of a vector: l2, which is unit length.
	Normalization string `koanf:"normalization" json:"normalization"`
	// MaxQueryTokens is what a query is cut to, in tokens. ≥ 1; default 256.
	MaxQueryTokens int `koanf:"max_query_tokens" json:"max_query_tokens"`
}

// NormalizationL2 is the normalisation of vectors to unit length.
const NormalizationL2 = "l2"

// DefaultVectors returns the defaults of the section "vectors".
func DefaultVectors() Vectors { return Vectors{Normalization: NormalizationL2, MaxQueryTokens: 256} }

// Validate reports every fault of the section.
func (v *Vectors) Validate() error {
	f := faults{section: "vectors"}
	if v.Provider == "" {
		for _, field := range []struct{ key, value string }{{"model", v.Model}, {"revision", v.Revision}} {
			if field.value != "" {
				f.add(field.key, field.value, "empty, or vectors.provider given")
			}
		}
		if v.Dimension != 0 {
			f.add("dimension", v.Dimension, "0, or vectors.provider given")
		}
	} else {
		if v.Model == "" {
			f.add("model", v.Model, "given with vectors.provider")
		}
		f.count("dimension", v.Dimension, 1)
	}
	oneOf(&f, "normalization", v.Normalization, NormalizationL2)
	f.count("max_query_tokens", v.MaxQueryTokens, 1)
	return f.err()
}

// Graph is the section "graph": how the corpus graph is built.
type Graph struct {
	// Version is the tag of the edges from vectors: knn_v1.
	Version string `koanf:"version" json:"version"`
	// K is how many nearest others a chunk selects. ≥ 1; default 10.
	K int `koanf:"k" json:"k"`
	// MinimumEdgeDistance is the shortest edge from vectors, in graph
	// distance. Finite, above 0, at most MaximumDistance; default 1e-6.
	MinimumEdgeDistance float64 `koanf:"minimum_edge_distance" json:"minimum_edge_distance"`
	// MaximumDistance is where distances are clamped. Finite, above 0;
	// default 10.
	MaximumDistance float64 `koanf:"maximum_distance" json:"maximum_distance"`
	// Weights is the length of an edge by edge type, in graph distance.
	// Finite, above 0; a type that is not listed has the length its builder
	// gives it. Empty by default.
	Weights map[string]float64 `koanf:"weights" json:"weights"`
}

// DefaultGraph returns the defaults of the section "graph".
func DefaultGraph() Graph {
	return Graph{Version: KNNV1, K: 10, MinimumEdgeDistance: 1e-6, MaximumDistance: mapmatched.DefaultMaximumDistance, Weights: map[string]float64{}}
}

// Validate reports every fault of the section.
func (g *Graph) Validate() error {
	f := faults{section: "graph"}
	f.version(KindGraph, g.Version)
	f.count("k", g.K, 1)
	f.positive("minimum_edge_distance", g.MinimumEdgeDistance)
	f.positive("maximum_distance", g.MaximumDistance)
	if g.MinimumEdgeDistance > g.MaximumDistance {
		f.add("minimum_edge_distance", g.MinimumEdgeDistance, "at most graph.maximum_distance, which is %v", g.MaximumDistance)
	}
	for _, edge := range sortedKeys(g.Weights) {
		f.positive("weights."+edge, g.Weights[edge])
	}
	return f.err()
}

// RerankParameters is the section "rerank": whether a reranker sees the
// candidates.
type RerankParameters struct {
	// Version is the tag of the formula: rerank_policy_pre_v1.
	Version string `koanf:"version" json:"version"`
	// Mode: off (default), deferred, which delivers the order beside the
	// answer, or sync, which waits for it.
	Mode RerankMode `koanf:"mode" json:"mode"`
	// BudgetMS is how long a reranker may take for a turn, in milliseconds.
	// ≥ 1; default 500.
	BudgetMS int `koanf:"budget_ms" json:"budget_ms"`
	// Pairs is how many candidates, the best, a reranker is given. ≥ 1;
	// default 50.
	Pairs int `koanf:"pairs" json:"pairs"`
}

// RerankMode is when a reranker is called.
type RerankMode string

// The modes.
const (
	RerankOff      RerankMode = "off"
	RerankDeferred RerankMode = "deferred"
	RerankSync     RerankMode = "sync"
)

// DefaultRerank returns the defaults of the section "rerank".
func DefaultRerank() RerankParameters {
	return RerankParameters{Version: RerankPolicyPreV1, Mode: RerankOff, BudgetMS: 500, Pairs: 50}
}

// Validate reports every fault of the section.
func (r *RerankParameters) Validate() error {
	f := faults{section: "rerank"}
	f.version(KindRerank, r.Version)
	oneOf(&f, "mode", r.Mode, RerankOff, RerankDeferred, RerankSync)
	f.count("budget_ms", r.BudgetMS, 1)
	f.count("pairs", r.Pairs, 1)
	return f.err()
}

// ActivationParameters is the section "activation": when an answer is sure
// enough to be shown.
type ActivationParameters struct {
	// Version is the tag of the formula: activation_pre_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off, shadow (default) or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// TOn is the confidence that emits. Between 0 and 1, above TOff; default
	// 0.62.
	TOn float64 `koanf:"t_on" json:"t_on"`
	// TOff is the confidence below which nothing is shown. Between 0 and 1;
	// default 0.52.
	TOff float64 `koanf:"t_off" json:"t_off"`
	// Cooldown is how many observations after an emission ended must pass
	// before the next may begin. ≥ 0; default 2; 0 lets it begin at once.
	Cooldown int `koanf:"cooldown" json:"cooldown"`
}

// DefaultActivation returns the defaults of the section "activation".
func DefaultActivation() ActivationParameters {
	return ActivationParameters{Version: ActivationPreV1, Stage: StageShadow, TOn: 0.62, TOff: 0.52, Cooldown: 2}
}

// Validate reports every fault of the section.
func (a *ActivationParameters) Validate() error {
	f := faults{section: "activation"}
	f.version(KindActivation, a.Version)
	f.stage("stage", a.Stage)
	f.within("t_on", a.TOn, 0, 1)
	f.within("t_off", a.TOff, 0, 1)
	if a.TOff >= a.TOn {
		f.add("t_off", a.TOff, "below activation.t_on, which is %v", a.TOn)
	}
	f.count("cooldown", a.Cooldown, 0)
	return f.err()
}

// Clustering is the section "clustering": groups of chunks by similarity.
type Clustering struct {
	// Version is the tag of the formula: cluster_shadow_pre_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off, shadow (default) or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// Linkage is the distance of two clusters: average, the mean over pairs.
	Linkage string `koanf:"linkage" json:"linkage"`
	// Threshold is the largest cosine distance at which clusters merge.
	// Between 0 and 2; default 0.3; 0 merges only equal directions.
	Threshold float64 `koanf:"threshold" json:"threshold"`
}

// LinkageAverage is the mean distance over the pairs of two clusters.
const LinkageAverage = "average"

// DefaultClustering returns the defaults of the section "clustering".
func DefaultClustering() Clustering {
	return Clustering{Version: ClusterShadowPreV1, Stage: StageShadow, Linkage: LinkageAverage, Threshold: 0.3}
}

// Validate reports every fault of the section.
func (c *Clustering) Validate() error {
	f := faults{section: "clustering"}
	f.version(KindClustering, c.Version)
	f.stage("stage", c.Stage)
	oneOf(&f, "linkage", c.Linkage, LinkageAverage)
	f.within("threshold", c.Threshold, 0, 2)
	return f.err()
}

// JudgementParameters is the section "judgement": what might be done with chunks
// that say nearly the same.
type JudgementParameters struct {
	// Version is the tag of the formula: judgement_shadow_pre_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default) or shadow. Judgements go to the log and nowhere
	// else.
	Stage Stage `koanf:"stage" json:"stage"`
	// CosineThreshold is the cosine of two chunks from which on they count as
	// near-duplicates. Between 0 and 1; default 0.95.
	CosineThreshold float64 `koanf:"cosine_threshold" json:"cosine_threshold"`
}

// DefaultJudgement returns the defaults of the section "judgement".
func DefaultJudgement() JudgementParameters {
	return JudgementParameters{Version: JudgementPreV1, Stage: StageOff, CosineThreshold: 0.95}
}

// Validate reports every fault of the section.
func (j *JudgementParameters) Validate() error {
	f := faults{section: "judgement"}
	f.version(KindJudgement, j.Version)
	oneOf(&f, "stage", j.Stage, StageOff, StageShadow)
	f.within("cosine_threshold", j.CosineThreshold, 0, 1)
	return f.err()
}

// Plugin is an entry of the list "plugins": a program that the policy trusts.
type Plugin struct {
	// Name of the plugin, unique in the list.
	Name string `koanf:"name" json:"name"`
	// SHA256 of its binary, in hexadecimal.
	SHA256 string `koanf:"sha256" json:"sha256"`
}

// ValidatePlugins reports every fault of the list.
func ValidatePlugins(plugins []Plugin) error {
	f := faults{section: "plugins"}
	first := map[string]int{}
	for i, p := range plugins {
		key := fmt.Sprintf("%d.", i)
		if p.Name == "" {
			f.add(key+"name", p.Name, "the name of a plugin")
		} else if j, twice := first[p.Name]; twice {
			f.add(key+"name", p.Name, "a name that plugins.%d does not have", j)
		} else {
			first[p.Name] = i
		}
		f.sha256(key+"sha256", p.SHA256)
	}
	return f.err()
}
