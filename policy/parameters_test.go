package policy

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

type validator interface{ Validate() error }

// section returns the defaults of a section, changed.
func section[S any](defaults func() S, change func(*S)) *S {
	s := defaults()
	change(&s)
	return &s
}

func TestDefaultsAreValid(t *testing.T) {
	none := section(DefaultDecode, func(*Decode) {})
	sections := map[string]validator{
		"decode": none, "context": new(DefaultContext()), "arms": new(DefaultArms()), "transition": new(DefaultTransition()),
		"decay": new(DefaultDecay()), "fusion": new(DefaultFusion()), "lexical": new(DefaultLexical()), "chunking": new(DefaultChunking()),
		"vectors": new(DefaultVectors()), "graph": new(DefaultGraph()), "rerank": new(DefaultRerank()),
		"activation": new(DefaultActivation()), "clustering": new(DefaultClustering()), "judgement": new(DefaultJudgement()),
	}
	for name, s := range sections {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// The keys of a section are the same in every format.
		for i := range reflect.TypeOf(s).Elem().NumField() {
			f := reflect.TypeOf(s).Elem().Field(i)
			if key := f.Tag.Get("koanf"); key == "" || key != f.Tag.Get("json") {
				t.Errorf("%s.%s has the keys %q and %q", name, f.Name, key, f.Tag.Get("json"))
			}
		}
	}
	if err := ValidatePlugins(nil); err != nil {
		t.Errorf("plugins: %v", err)
	}
}

func TestDefaultsAgreeWithTheCode(t *testing.T) {
	if l := DefaultLexical(); l.K1 != lexical.K1 || l.B != lexical.B || l.StopwordsSHA256 != lexical.StopwordsSHA256 || l.Version != lexical.AnalyzerTag {
		t.Errorf("lexical defaults %+v are not those of the embedded index", l)
	}
	if g := DefaultGraph(); g.K != graphbuild.DefaultK || g.MaximumDistance != graphbuild.DefaultMaximumDistance ||
		g.MinimumEdgeDistance != graphbuild.DefaultMinimumEdgeDistance || g.Version != graphbuild.FormulaKNN {
		t.Errorf("graph defaults %+v are not those of graphbuild", g)
	}
	if c := DefaultChunking(); c.Limit != graphbuild.DefaultMaxBytes {
		t.Errorf("chunking defaults %+v are not those of graphbuild", c)
	}
}

func TestSectionFaults(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	hash := strings.Repeat("0a", 32)
	for _, c := range []struct {
		section validator
		want    []string // every fault
	}{
		{section(DefaultDecode, func(d *Decode) {
			d.Version, d.EmissionWeight, d.TransitionWeight, d.ScoreNormalization = "decode_v2", -1, nan, "z-score"
			d.FixedLag, d.CandidateLimit, d.Beam, d.BreakDistance = new(-1), 0, -1, -0.5
			d.OnEmpty, d.Temperature, d.RankBy = "Gap", 0, "marginal"
		}), []string{
			`decode.version is "decode_v2": it must be decode_v1; did you mean "decode_v1"?`,
			"decode.emission_weight is -1: it must be finite and at least 0",
			"decode.transition_weight is NaN: it must be finite and at least 0",
			`decode.score_normalization is "z-score": it must be zscore, center or none; did you mean "zscore"?`,
			"decode.fixed_lag is -1: it must be at least 0, or null for full decoding",
			"decode.candidate_limit is 0: it must be at least 1",
			"decode.beam is -1: it must be at least 0",
			"decode.break_distance is -0.5: it must be finite and at least 0",
			`decode.on_empty is "Gap": it must be gap or error; did you mean "gap"?`,
			"decode.temperature is 0: it must be between 1e-06 and 1e+06",
			`decode.rank_by is "marginal": it must be max_marginal or filtered_posterior; did you mean "max_marginal"?`,
		}},
		{section(DefaultContext, func(c *Context) { c.Radius, c.Limit = inf, new(-1) }), []string{
			"context.radius is +Inf: it must be finite and at least 0",
			"context.limit is -1: it must be at least 0, or null for no limit",
		}},
		{section(DefaultArms, func(a *Arms) {
			a.Version, a.Stage, a.Raw, a.History, a.Answer = "context_v0", "on", Arm{true, 0}, Arm{false, -1}, Arm{true, nan}
			a.Gamma, a.FeedbackTerms = 1.5, -1
			a.Gate = Gate{Stage: "", Bias: nan, Terms: inf, IDF: -inf, Referring: nan, Entropy: nan}
		}), []string{
			`arms.version is "context_v0": it must be context_v1; did you mean "context_v1"?`,
			`arms.stage is "on": it must be off, shadow or active`,
			"arms.raw.weight is 0: it must be above 0, or arms.raw.enabled false",
			"arms.history.weight is -1: it must be finite and at least 0",
			"arms.answer.weight is NaN: it must be finite and at least 0",
			"arms.gamma is 1.5: it must be between 0 and 1",
			"arms.feedback_terms is -1: it must be at least 0",
			`arms.gate.stage is "": it must be off, shadow or active`,
			"arms.gate.bias is NaN: it must be finite",
			"arms.gate.terms is +Inf: it must be finite",
			"arms.gate.idf is -Inf: it must be finite",
			"arms.gate.referring is NaN: it must be finite",
			"arms.gate.entropy is NaN: it must be finite",
		}},
		{section(DefaultArms, func(a *Arms) { a.Raw.Enabled, a.History.Enabled = false, false }), []string{
			"arms.raw.enabled is false: it must be true unless another arm is enabled",
		}},
		{section(DefaultTransition, func(t *Transition) {
			t.Stage = StageActive
		}), []string{`transition.p is "empty": it must be given, with transition.q, when transition.stage is active`}},
		{section(DefaultTransition, func(t *Transition) {
			t.Version, t.Stage = "", "shade"
			t.P, t.Q = map[string]float64{"stay": 0, "jump": 1.5}, map[string]float64{"jump": 0.25, "next": 0.25}
		}), []string{
			`transition.version is "": it must be transition_v1`,
			`transition.stage is "shade": it must be off, shadow or active; did you mean "shadow"?`,
			"transition.p.jump is 1.5: it must be above 0 and at most 1",
			"transition.p.stay is 0: it must be above 0 and at most 1",
			"transition.p.stay is 0: it must be left out, or given in transition.q too",
			`transition.p is "a table that sums to 1.5": it must be shares that sum to 1`,
			"transition.q.next is 0.25: it must be left out, or given in transition.p too",
			`transition.q is "a table that sums to 0.5": it must be shares that sum to 1`,
		}},
		{section(DefaultTransition, func(t *Transition) {
			t.P, t.Q = map[string]float64{"stay": 1}, map[string]float64{"stay": 1}
		}), []string{
			`transition.p is "a table without jump": it must be a table with jump, the move that is no other`,
			`transition.q is "a table without jump": it must be a table with jump, the move that is no other`,
		}},
		{section(DefaultDecay, func(d *Decay) {
			d.Version, d.Stage, d.DefaultWeight, d.Weights = "decay_v3", "x", 0, map[string]float64{"next": 1.1, "link": nan}
			d.Depth, d.Floor = -1, 1.5
		}), []string{
			`decay.version is "decay_v3": it must be decay_exact_v1 or decay_v1; did you mean "decay_v1"?`,
			`decay.stage is "x": it must be off, shadow or active`,
			"decay.default_weight is 0: it must be above 0 and at most 1",
			"decay.weights.link is NaN: it must be above 0 and at most 1",
			"decay.weights.next is 1.1: it must be above 0 and at most 1",
			"decay.depth is -1: it must be at least 0",
			"decay.floor is 1.5: it must be between 0 and 1",
		}},
		{section(DefaultFusion, func(u *Fusion) {
			u.Version, u.Alpha, u.MinScore, u.K = "rrf", nan, 2, -1
			u.Arms = map[string]FusionArm{"": {1, 0}, "dense": {-1, -1}}
		}), []string{
			`fusion.version is "rrf": it must be geometric_v1, hybrid_fusion_pre_v1 or rrf_v1`,
			"fusion.alpha is NaN: it must be between 0 and 1",
			"fusion.min_score is 2: it must be between 0 and 1",
			"fusion.k is -1: it must be finite and at least 0",
			`fusion.arms is "a table with the name \"\"": it must be tables with names`,
			"fusion.arms.dense.weight is -1: it must be finite and at least 0",
			"fusion.arms.dense.timeout_ms is -1: it must be at least 0",
		}},
		{section(DefaultFusion, func(u *Fusion) { u.Arms = nil }), []string{`fusion.arms is "empty": it must be at least one arm with a weight`}},
		{section(DefaultFusion, func(u *Fusion) { u.Arms = map[string]FusionArm{"a": {}, "b": {}} }), []string{
			`fusion.arms is "without a weight above 0": it must be arms of which at least one has a weight above 0`,
		}},
		{section(DefaultLexical, func(l *Lexical) {
			l.Version, l.K1, l.B, l.StopwordsSHA256 = "lexical_pre_v1", -1, 1.5, strings.ToUpper(hash)
		}), []string{
			`lexical.version is "lexical_pre_v1": it must be lexical_pre_v2; did you mean "lexical_pre_v2"?`,
			"lexical.k1 is -1: it must be finite and at least 0",
			"lexical.b is 1.5: it must be between 0 and 1",
			fmt.Sprintf("lexical.stopwords_sha256 is %q: it must be a SHA-256: 64 lower-case hexadecimal digits", strings.ToUpper(hash)),
		}},
		{section(DefaultChunking, func(c *Chunking) { c.Version, c.Limit, c.Unit = "markdown", 0, "characters" }), []string{
			`chunking.version is "markdown": it must be fixed_v1, m7_chunk_pre_v1 or markdown_v1; did you mean "markdown_v1"?`,
			"chunking.limit is 0: it must be at least 1",
			`chunking.unit is "characters": it must be bytes or tokens`,
		}},
		{section(DefaultChunking, func(c *Chunking) { c.Version, c.Tokenizer, c.TokenizerSHA256 = M7ChunkPreV1, "bert", hash }), []string{
			`chunking.unit is "bytes": it must be tokens, which is what m7_chunk_pre_v1 counts`,
			`chunking.tokenizer is "bert": it must be empty, because chunking.unit is bytes`,
			fmt.Sprintf("chunking.tokenizer_sha256 is %q: it must be empty, because chunking.unit is bytes", hash),
		}},
		{section(DefaultChunking, func(c *Chunking) { c.Unit = UnitTokens }), []string{
			`chunking.unit is "tokens": it must be bytes, which is what markdown_v1 counts`,
			`chunking.tokenizer is "": it must be the name of a tokenizer, because chunking.unit is tokens`,
			`chunking.tokenizer_sha256 is "": it must be a SHA-256: 64 lower-case hexadecimal digits`,
		}},
		{section(DefaultVectors, func(v *Vectors) {
			v.Model, v.Revision, v.Dimension, v.Normalization, v.MaxQueryTokens = "m", "r", 3, "l1", 0
		}), []string{
			`vectors.model is "m": it must be empty, or vectors.provider given`,
			`vectors.revision is "r": it must be empty, or vectors.provider given`,
			"vectors.dimension is 3: it must be 0, or vectors.provider given",
			`vectors.normalization is "l1": it must be l2; did you mean "l2"?`,
			"vectors.max_query_tokens is 0: it must be at least 1",
		}},
		{section(DefaultVectors, func(v *Vectors) { v.Provider = "onnx" }), []string{
			`vectors.model is "": it must be given with vectors.provider`,
			"vectors.dimension is 0: it must be at least 1",
		}},
		{section(DefaultGraph, func(g *Graph) {
			g.Version, g.K, g.MinimumEdgeDistance, g.MaximumDistance, g.Weights = "knn", 0, 2, 1, map[string]float64{"next": 0}
		}), []string{
			`graph.version is "knn": it must be knn_v1`,
			"graph.k is 0: it must be at least 1",
			"graph.minimum_edge_distance is 2: it must be at most graph.maximum_distance, which is 1",
			"graph.weights.next is 0: it must be finite and above 0",
		}},
		{section(DefaultGraph, func(g *Graph) { g.MinimumEdgeDistance, g.MaximumDistance = 0, inf }), []string{
			"graph.minimum_edge_distance is 0: it must be finite and above 0",
			"graph.maximum_distance is +Inf: it must be finite and above 0",
		}},
		{section(DefaultRerank, func(r *RerankParameters) { r.Version, r.Mode, r.BudgetMS, r.Pairs = "rerank_v1", "async", 0, -1 }), []string{
			`rerank.version is "rerank_v1": it must be rerank_policy_pre_v1`,
			`rerank.mode is "async": it must be off, deferred or sync; did you mean "sync"?`,
			"rerank.budget_ms is 0: it must be at least 1",
			"rerank.pairs is -1: it must be at least 1",
		}},
		{section(DefaultActivation, func(a *ActivationParameters) { a.Version, a.Stage, a.TOn, a.TOff, a.Cooldown = "x", "x", 0.5, 0.5, -1 }), []string{
			`activation.version is "x": it must be activation_pre_v1`,
			`activation.stage is "x": it must be off, shadow or active`,
			"activation.t_off is 0.5: it must be below activation.t_on, which is 0.5",
			"activation.cooldown is -1: it must be at least 0",
		}},
		{section(DefaultActivation, func(a *ActivationParameters) { a.TOn, a.TOff = 1.5, nan }), []string{
			"activation.t_on is 1.5: it must be between 0 and 1",
			"activation.t_off is NaN: it must be between 0 and 1",
		}},
		{section(DefaultClustering, func(c *Clustering) { c.Version, c.Stage, c.Linkage, c.Threshold = "x", "", "ward", 2.5 }), []string{
			`clustering.version is "x": it must be cluster_shadow_pre_v1`,
			`clustering.stage is "": it must be off, shadow or active`,
			`clustering.linkage is "ward": it must be average`,
			"clustering.threshold is 2.5: it must be between 0 and 2",
		}},
		{section(DefaultJudgement, func(j *JudgementParameters) { j.Version, j.Stage, j.CosineThreshold = "x", "x", -1.5 }), []string{
			`judgement.version is "x": it must be judgement_shadow_pre_v1`,
			`judgement.stage is "x": it must be off or shadow`,
			"judgement.cosine_threshold is -1.5: it must be between 0 and 1",
		}},
		{plugins{{"a", hash}, {"", hash}, {"a", "abc"}}, []string{
			`plugins.1.name is "": it must be the name of a plugin`,
			`plugins.2.name is "a": it must be a name that plugins.0 does not have`,
			`plugins.2.sha256 is "abc": it must be a SHA-256: 64 lower-case hexadecimal digits`,
		}},
	} {
		err := c.section.Validate()
		if !errors.Is(err, mapmatched.ErrInvalidConfig) {
			t.Errorf("%T: error %v, want ErrInvalidConfig", c.section, err)
			continue
		}
		if got, want := err.Error(), strings.Join(c.want, "\n"); got != want {
			t.Errorf("%T reports\n%s\nwant\n%s", c.section, got, want)
		}
		if got := Faults(fmt.Errorf("load: %w", err)); len(got) != len(c.want) || got[0].Error() != c.want[0] {
			t.Errorf("%T: faults %v", c.section, got)
		}
	}
}

type plugins []Plugin

func (p plugins) Validate() error { return ValidatePlugins(p) }

func TestFaultsOfOtherErrors(t *testing.T) {
	if got := Faults(errors.New("other")); got != nil {
		t.Errorf("faults %v", got)
	}
	if got := Faults(nil); got != nil {
		t.Errorf("faults %v of nil", got)
	}
	f := &Fault{"fusion.k", -1, "finite and at least 0"}
	if got := Faults(errors.Join(errors.New("other"), f)); len(got) != 1 || got[0] != f {
		t.Errorf("faults %v, want %v", got, f)
	}
}
