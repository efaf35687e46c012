package policy

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/mapmatched/mmplug/mapmatched"
)

// SchemaV1 is the value of the key "schema" in policy files of this form.
const SchemaV1 = "mmplug.policy/1"

// Policy pins every formula version and parameter that a result depends on. It
// says nothing about where things are: that is configuration, which can never
// override a policy. FORMAT.md describes the file form key by key.
type Policy struct {
	// Schema is SchemaV1.
	Schema string `koanf:"schema" json:"schema"`
	// Name for people: 1 to 64 letters, digits, dots, dashes and underscores.
	// It is not part of the digest.
	Name string `koanf:"name" json:"name"`
	// Description in a line, "" for none. It is not part of the digest.
	Description string `koanf:"description" json:"description"`
	// StatedDigest is the digest that the file claims to have, "" for none. A
	// policy whose digest is another one is refused.
	StatedDigest string `koanf:"digest" json:"digest"`
	// Evidence is the SHA-256 of the evaluation report that a frozen policy
	// was frozen on, "" when it is not frozen.
	Evidence string `koanf:"evidence" json:"evidence"`

	Decode     Decode               `koanf:"decode" json:"decode"`
	Context    Context              `koanf:"context" json:"context"`
	Arms       Arms                 `koanf:"arms" json:"arms"`
	Transition Transition           `koanf:"transition" json:"transition"`
	Reply      Reply                `koanf:"reply" json:"reply"`
	Proposals  Proposals            `koanf:"proposals" json:"proposals"`
	Decay      Decay                `koanf:"decay" json:"decay"`
	Fusion     Fusion               `koanf:"fusion" json:"fusion"`
	Lexical    Lexical              `koanf:"lexical" json:"lexical"`
	Chunking   Chunking             `koanf:"chunking" json:"chunking"`
	Vectors    Vectors              `koanf:"vectors" json:"vectors"`
	Graph      Graph                `koanf:"graph" json:"graph"`
	Rerank     RerankParameters     `koanf:"rerank" json:"rerank"`
	Activation ActivationParameters `koanf:"activation" json:"activation"`
	Clustering Clustering           `koanf:"clustering" json:"clustering"`
	Judgement  JudgementParameters  `koanf:"judgement" json:"judgement"`
	Plugins    []Plugin             `koanf:"plugins" json:"plugins"`
}

// Default returns a policy without a name in which every section has its
// defaults: the pure decoder.
func Default() *Policy {
	return &Policy{
		Schema:     SchemaV1,
		Decode:     DefaultDecode(),
		Context:    DefaultContext(),
		Arms:       DefaultArms(),
		Transition: DefaultTransition(),
		Reply:      DefaultReply(),
		Proposals:  DefaultProposals(),
		Decay:      DefaultDecay(),
		Fusion:     DefaultFusion(),
		Lexical:    DefaultLexical(),
		Chunking:   DefaultChunking(),
		Vectors:    DefaultVectors(),
		Graph:      DefaultGraph(),
		Rerank:     DefaultRerank(),
		Activation: DefaultActivation(),
		Clustering: DefaultClustering(),
		Judgement:  DefaultJudgement(),
	}
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate reports every fault of every section, nil when there is none. A
// policy that states a digest other than its own is at fault too: with
// evidence, which makes it frozen, by mapmatched.ErrPolicyFrozen.
func (p *Policy) Validate() error {
	var own []error
	fault := func(key string, value any, want string) {
		own = append(own, &Fault{Key: key, Value: value, Want: want})
	}
	if p.Schema != SchemaV1 {
		fault("schema", p.Schema, SchemaV1+", the one that this release reads")
	}
	if !nameForm.MatchString(p.Name) {
		fault("name", p.Name, "1 to 64 letters, digits, dots, dashes or underscores")
	}
	if p.StatedDigest != "" && !sha256Form.MatchString(p.StatedDigest) {
		fault("digest", p.StatedDigest, "a SHA-256: 64 lower-case hexadecimal digits, or left out")
	}
	if p.Evidence != "" && !sha256Form.MatchString(p.Evidence) {
		fault("evidence", p.Evidence, "the SHA-256 of an evaluation report: 64 lower-case hexadecimal digits, or left out")
	}
	if p.Evidence != "" && p.StatedDigest == "" {
		fault("digest", p.StatedDigest, "the digest of the policy, because evidence makes it a frozen one")
	}
	if p.Decode.BreakDistance > p.Graph.MaximumDistance {
		fault("decode.break_distance", p.Decode.BreakDistance, fmt.Sprintf("at most graph.maximum_distance, which is %v", p.Graph.MaximumDistance))
	}
	if p.Decode.BreakDistance > 0 && p.Transition.Stage != StageOff {
		fault("decode.break_distance", p.Decode.BreakDistance, fmt.Sprintf("0 when transition.stage is %s, whose costs are no distances", p.Transition.Stage))
	}
	if p.Decode.BreakDistance > 0 && p.Reply.Stage != StageOff {
		fault("decode.break_distance", p.Decode.BreakDistance, fmt.Sprintf("0 when reply.stage is %s, whose costs are no distances", p.Reply.Stage))
	}
	return errors.Join(append(own,
		p.Decode.Validate(), p.Context.Validate(), p.Arms.Validate(), p.Transition.Validate(), p.Reply.Validate(), p.Proposals.Validate(), p.Decay.Validate(),
		p.Fusion.Validate(), p.Lexical.Validate(), p.Chunking.Validate(), p.Vectors.Validate(), p.Graph.Validate(),
		p.Rerank.Validate(), p.Activation.Validate(), p.Clustering.Validate(), p.Judgement.Validate(),
		ValidatePlugins(p.Plugins), p.checkDigest())...)
}

// checkDigest compares the stated digest with the policy's own.
func (p *Policy) checkDigest() error {
	if p.StatedDigest == "" {
		return nil
	}
	digest := p.Digest()
	switch {
	case p.StatedDigest == digest:
		return nil
	case p.Frozen():
		return fmt.Errorf("%w: it was frozen with the digest %s, its content now has %s: restore the file, or change a copy without digest and evidence",
			mapmatched.ErrPolicyFrozen, p.StatedDigest, digest)
	}
	return &Fault{"digest", p.StatedDigest, "that of the content, " + digest + ", or left out"}
}

// Frozen reports whether the policy carries the evidence it was frozen on.
func (p *Policy) Frozen() bool { return p.Evidence != "" }

// Config returns the settings of a session under this policy, with the
// policy's digest. A policy that Validate refuses is an error.
func (p *Policy) Config() (*mapmatched.Config, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p.Name, err)
	}
	c := &mapmatched.Config{
		EmissionWeight:     new(p.Decode.EmissionWeight),
		TransitionWeight:   new(p.Decode.TransitionWeight),
		ScoreNormalization: p.Decode.ScoreNormalization,
		CandidateLimit:     p.Decode.CandidateLimit,
		ContextRadius:      new(p.Context.Radius),
		Beam:               p.Decode.Beam,
		BreakDistance:      p.Decode.BreakDistance,
		OnEmpty:            p.Decode.OnEmpty,
		RankBy:             p.Decode.RankBy,
		Temperature:        p.Decode.Temperature,
		PolicyDigest:       p.Digest(),
	}
	if p.Proposals.Stage == StageActive {
		c.CandidateLimit += p.Proposals.Limit
	}
	if p.Decode.FixedLag != nil {
		c.FixedLag = new(*p.Decode.FixedLag)
	}
	if p.Context.Limit != nil {
		c.ContextLimit = new(*p.Context.Limit)
	}
	return c, c.Validate()
}
