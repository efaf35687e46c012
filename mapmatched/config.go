package mapmatched

import (
	"errors"
	"fmt"
	"math"
)

// OnEmpty says what a session does with a turn that has no candidates.
type OnEmpty string

// The choices.
const (
	OnEmptyGap   OnEmpty = "gap"   // record the turn without a chunk (default)
	OnEmptyError OnEmpty = "error" // refuse it with ErrNoCandidates
)

// RankBy says by what the candidates of a turn are ordered.
type RankBy string

// The choices.
const (
	// RankByMaxMarginal orders by the best path score that ends in a
	// candidate, so the decoded chunk comes first (default).
	RankByMaxMarginal RankBy = "max_marginal"
	// RankByFilteredPosterior orders by the probability of a candidate given
	// the turns so far, summed over all paths. The decoded chunk need not
	// come first.
	RankByFilteredPosterior RankBy = "filtered_posterior"
)

// Defaults of a Config.
const (
	DefaultCandidateLimit = 20
	DefaultContextRadius  = 1.0
	DefaultRetainTurns    = 512
)

// Config sets a session. The zero value, and nil, are the defaults. Fields in
// which zero is a value of its own are pointers, nil meaning the default:
// Config{TransitionWeight: new(0.5), FixedLag: new(2)}.
type Config struct {
	// EmissionWeight λ multiplies normalised scores. Finite, ≥ 0; nil means 1.
	EmissionWeight *float64
	// TransitionWeight β multiplies graph distances. Finite, ≥ 0; nil means
	// 1. With 0 every turn is decided alone and the graph is not asked.
	TransitionWeight *float64
	// ScoreNormalization of each turn's raw scores; "" means zscore.
	ScoreNormalization Normalization
	// FixedLag L ≥ 0 commits turn t−L once turn t is decoded. nil is full
	// decoding: no turn is ever committed.
	FixedLag *int
	// CandidateLimit is how many candidates of a turn are used, in provider
	// order; 0 means 20.
	CandidateLimit int
	// ContextRadius is how far around the decoded chunk context expansion
	// goes, in graph distance. Finite, ≥ 0; nil means 1.
	ContextRadius *float64
	// ContextLimit is the most chunk IDs a context holds, ≥ 0; nil means no
	// limit.
	ContextLimit *int
	// Beam is how many candidates of a turn, the best by path score, may be
	// continued by the next one; 0 means all of them, which is exact.
	Beam int
	// BreakDistance starts a new segment at a turn none of whose candidates
	// is nearer than this to a candidate of the turn before: the transition
	// then costs nothing. Above 0 and at most the maximum distance of the
	// graph, which is the usual value; 0 means never.
	BreakDistance float64
	// OnEmpty is what to do with a turn without candidates; "" means gap.
	OnEmpty OnEmpty
	// RankBy orders the ranking; "" means max_marginal.
	RankBy RankBy
	// Temperature τ of the path posterior, exp(score/τ). Between 1e-6 and
	// 1e6; 0 means 1.
	Temperature float64
	// RetainTurns is how many of the latest turns keep their candidates even
	// when the path through them is final. Once there are twice as many, the
	// older ones that are final are released. That changes no path, score or
	// ranking, but a released turn keeps the confidence it had and KBest needs
	// all turns. 0 means 512, negative means every turn.
	RetainTurns int
	// PolicyDigest is recorded in traces and saved sessions when set.
	PolicyDigest string
	// Corpus identifies the corpus, such as by a digest of its index. It is
	// recorded in saved sessions, which continue on the same corpus only.
	Corpus string
	// Decoder is the backend; nil means the built-in incremental Viterbi. Any
	// other backend is given the whole trellis at every turn.
	Decoder Decoder
}

// Validate reports every field that is out of its range, nil when none is.
func (c *Config) Validate() error {
	_, err := c.resolve()
	return err
}

// settings is a Config with its defaults filled in.
type settings struct {
	emission, transition float64
	normalization        Normalization
	lag                  int // −1 in full mode
	candidates           int
	radius               float64
	contextLimit         int // −1 for none
	beam                 int // 0 for all
	breakDistance        float64
	onEmpty              OnEmpty
	rankBy               RankBy
	temperature          float64
	retain               int // −1 for all
	digest, corpus       string
	decoder              Decoder // nil for the built-in one
}

func (c *Config) resolve() (settings, error) {
	if c == nil {
		c = &Config{}
	}
	var faults []error
	fault := func(field string, value any, want string) {
		faults = append(faults, fmt.Errorf("%s is %v: %w: it must be %s", field, value, ErrInvalidConfig, want))
	}
	number := func(field string, p *float64, standard float64) float64 {
		if p == nil {
			return standard
		}
		if !(*p >= 0) || math.IsInf(*p, 0) {
			fault(field, *p, "finite and at least 0")
		}
		return *p
	}
	count := func(field string, p *int, standard int) int {
		if p == nil {
			return standard
		}
		if *p < 0 {
			fault(field, *p, "at least 0")
		}
		return *p
	}
	s := settings{
		emission:      number("emission_weight", c.EmissionWeight, 1),
		transition:    number("transition_weight", c.TransitionWeight, 1),
		normalization: c.ScoreNormalization,
		lag:           count("fixed_lag", c.FixedLag, -1),
		candidates:    c.CandidateLimit,
		radius:        number("context_radius", c.ContextRadius, DefaultContextRadius),
		contextLimit:  count("context_limit", c.ContextLimit, -1),
		beam:          c.Beam,
		breakDistance: c.BreakDistance,
		onEmpty:       c.OnEmpty,
		rankBy:        c.RankBy,
		temperature:   c.Temperature,
		retain:        c.RetainTurns,
		digest:        c.PolicyDigest,
		corpus:        c.Corpus,
		decoder:       c.Decoder,
	}
	switch s.normalization {
	case "":
		s.normalization = NormalizeZScore
	case NormalizeZScore, NormalizeCenter, NormalizeNone:
	default:
		fault("score_normalization", fmt.Sprintf("%q", s.normalization), "zscore, center or none")
	}
	if s.candidates == 0 {
		s.candidates = DefaultCandidateLimit
	} else if s.candidates < 0 {
		fault("candidate_limit", s.candidates, "at least 1")
	}
	if s.beam < 0 {
		fault("beam", s.beam, "at least 1, or 0 for no beam")
	}
	if !(s.breakDistance >= 0) || math.IsInf(s.breakDistance, 0) {
		fault("break_distance", s.breakDistance, "above 0 and at most the maximum distance of the graph, or 0 for no breaks")
	}
	switch s.onEmpty {
	case "":
		s.onEmpty = OnEmptyGap
	case OnEmptyGap, OnEmptyError:
	default:
		fault("on_empty", fmt.Sprintf("%q", s.onEmpty), "gap or error")
	}
	switch s.rankBy {
	case "":
		s.rankBy = RankByMaxMarginal
	case RankByMaxMarginal, RankByFilteredPosterior:
	default:
		fault("rank_by", fmt.Sprintf("%q", s.rankBy), "max_marginal or filtered_posterior")
	}
	if s.temperature == 0 {
		s.temperature = 1
	} else if !(s.temperature >= 1e-6 && s.temperature <= 1e6) {
		fault("temperature", s.temperature, "between 1e-6 and 1e6")
	}
	if s.beam > 0 && s.decoder != nil {
		fault("beam", s.beam, "0 with a decoder of your own, which prunes as it likes")
	}
	if s.retain == 0 {
		s.retain = DefaultRetainTurns
	} else if s.retain < 0 {
		s.retain = -1
	}
	return s, errors.Join(faults...)
}

// options spells the settings as traces and saved sessions do. They share
// nothing with s.
func (s settings) options() *Options {
	o := &Options{
		CandidateLimit:     &s.candidates,
		ContextRadius:      &s.radius,
		EmissionWeight:     &s.emission,
		OnEmpty:            (*string)(&s.onEmpty),
		ScoreNormalization: (*string)(&s.normalization),
		Temperature:        &s.temperature,
		TransitionWeight:   &s.transition,
	}
	if s.rankBy != RankByMaxMarginal {
		o.RankBy = (*string)(&s.rankBy)
	}
	if s.lag >= 0 {
		o.FixedLag = &s.lag
	}
	if s.contextLimit >= 0 {
		o.ContextLimit = &s.contextLimit
	}
	if s.beam > 0 {
		o.Beam = &s.beam
	}
	if s.breakDistance > 0 {
		o.BreakDistance = &s.breakDistance
	}
	return o
}

// Config returns the settings that o spells. An explicit zero where zero has
// no meaning of its own (candidate_limit, beam, break_distance, temperature)
// is an error, as is whatever Config.Validate refuses.
func (o *Options) Config() (*Config, error) {
	c := &Config{
		EmissionWeight:   o.EmissionWeight,
		TransitionWeight: o.TransitionWeight,
		FixedLag:         o.FixedLag,
		ContextRadius:    o.ContextRadius,
		ContextLimit:     o.ContextLimit,
	}
	var faults []error
	given := func(field string, value any, ok bool) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s is %#v: %w: leave it out for the default", field, value, ErrInvalidConfig))
		}
	}
	if o.ScoreNormalization != nil {
		c.ScoreNormalization = Normalization(*o.ScoreNormalization)
		given("score_normalization", *o.ScoreNormalization, *o.ScoreNormalization != "")
	}
	if o.OnEmpty != nil {
		c.OnEmpty = OnEmpty(*o.OnEmpty)
		given("on_empty", *o.OnEmpty, *o.OnEmpty != "")
	}
	if o.RankBy != nil {
		c.RankBy = RankBy(*o.RankBy)
		given("rank_by", *o.RankBy, *o.RankBy != "")
	}
	if o.CandidateLimit != nil {
		c.CandidateLimit = *o.CandidateLimit
		given("candidate_limit", 0, c.CandidateLimit != 0)
	}
	if o.Beam != nil {
		c.Beam = *o.Beam
		given("beam", 0, c.Beam != 0)
	}
	if o.BreakDistance != nil {
		c.BreakDistance = *o.BreakDistance
		given("break_distance", 0, c.BreakDistance != 0)
	}
	if o.Temperature != nil {
		c.Temperature = *o.Temperature
		given("temperature", 0, c.Temperature != 0)
	}
	if err := errors.Join(append(faults, c.Validate())...); err != nil {
		return nil, err
	}
	return c, nil
}
