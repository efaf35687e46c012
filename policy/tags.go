package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Kind is what a formula is for. Formulas of one kind replace each other.
type Kind string

// The kinds.
const (
	KindActivation Kind = "activation"
	KindChunking   Kind = "chunking"
	KindClustering Kind = "clustering"
	KindContext    Kind = "context"
	KindDecay      Kind = "decay"
	KindDecode     Kind = "decode"
	KindFusion     Kind = "fusion"
	KindGraph      Kind = "graph"
	KindJudgement  Kind = "judgement"
	KindLexical    Kind = "lexical"
	KindProposals  Kind = "proposals"
	KindReply      Kind = "reply"
	KindRerank     Kind = "rerank"
	KindTransition Kind = "transition"
)

// The version tags. What a tag means never changes.
const (
	ActivationPreV1    = "activation_pre_v1"
	M7ChunkPreV1       = "m7_chunk_pre_v1"
	FixedV1            = "fixed_v1"
	MarkdownV1         = "markdown_v1"
	ClusterShadowPreV1 = "cluster_shadow_pre_v1"
	ContextV1          = "context_v1"
	DecayV1            = "decay_v1"
	DecayExactV1       = "decay_exact_v1"
	DecodeV1           = mapmatched.ScoreModel
	GeometricV1        = "geometric_v1"
	HybridFusionPreV1  = "hybrid_fusion_pre_v1"
	RRFV1              = "rrf_v1"
	KNNV1              = "knn_v1"
	JudgementPreV1     = "judgement_shadow_pre_v1"
	LexicalPreV2       = "lexical_pre_v2"
	ProposalsV1        = "proposals_v1"
	ReplyV1            = "reply_v1"
	RerankPolicyPreV1  = "rerank_policy_pre_v1"
	TransitionV1       = "transition_v1"
)

// FormulaInfo describes a formula.
type FormulaInfo struct {
	Tag       string `json:"tag"`
	Kind      Kind   `json:"kind"`
	Summary   string `json:"summary"`             // what it computes, in one line
	Paragraph string `json:"paragraph,omitempty"` // paragraph of the semantics that defines it, "" when only Code does
	Code      string `json:"code"`                // what computes it: a package or a function of this one
}

// formulas is the registry, by kind and then by tag.
var formulas = []FormulaInfo{
	{ActivationPreV1, KindActivation, "suppress, prefetch or emit by two thresholds with hysteresis and a cooldown", "§12", "policy.Activation"},
	{FixedV1, KindChunking, "windows of a fixed number of tokens or bytes, no overlap", "§9", "graphbuild"},
	{M7ChunkPreV1, KindChunking, "whole paragraphs packed up to a number of tokens of the pinned tokenizer, no overlap", "§9", "graphbuild"},
	{MarkdownV1, KindChunking, "cut at Markdown headings, long sections at paragraphs", "§9", "graphbuild"},
	{ClusterShadowPreV1, KindClustering, "agglomerative clusters by cosine distance with average linkage", "§13", "graphbuild"},
	{ContextV1, KindContext, "terms of the query, its history, the last reply and the last chunk, behind a logistic gate", "§14", "policy.ContextTerms"},
	{DecayExactV1, KindDecay, "largest product of edge weights over all paths of up to D hops", "§6", "policy.Expand"},
	{DecayV1, KindDecay, "largest product of edge weights over the paths of the fewest hops", "§6", "policy.Expand"},
	{DecodeV1, KindDecode, "sum of weighted normalised scores minus weighted graph distances along the path", "§1", "mapmatched"},
	{GeometricV1, KindFusion, "sim^α · decay^(1−α)", "§6", "policy.Geometric"},
	{HybridFusionPreV1, KindFusion, "weighted sum of scores that are min–max normalised within each arm", "§7", "policy.Fuse"},
	{RRFV1, KindFusion, "weighted sum of 1/(k + rank), rank from 1", "§7", "policy.Fuse"},
	{KNNV1, KindGraph, "undirected union of every chunk's k nearest others by cosine distance", "§5", "graphbuild"},
	{JudgementPreV1, KindJudgement, "keep, merge or supersede for chunks of an answer that are near-duplicates", "", "policy.Judge"},
	{LexicalPreV2, KindLexical, "BM25 over NFKC lower-case words and CJK character pairs without stopwords", "§8", "adapters/embedded/lexical"},
	{ProposalsV1, KindProposals, "the best chunks of the turn before and their neighbourhoods as further candidates", "", "policy.Retriever"},
	{ReplyV1, KindReply, "μ·(1 − fit of the last reply to the chunk that the turn goes on from)", "", "policy.Reply.Cost"},
	{RerankPolicyPreV1, KindRerank, "off, deferred or within a budget, keeping the given order when the answer is not usable", "§11", "policy.Rerank"},
	{TransitionV1, KindTransition, "−log(p/q) of the kind of move", "§15", "policy.Transition.Cost"},
}

// ErrUnknownFormula is the error of a version tag that is not in the registry,
// or not of the kind it is used for.
var ErrUnknownFormula = errors.New("unknown formula")

// Formulas lists the registry, by kind and then by tag.
func Formulas() []FormulaInfo { return slices.Clone(formulas) }

// Formula looks up a tag. An unknown one is an error (ErrUnknownFormula) that
// names the nearest and lists all.
func Formula(tag string) (FormulaInfo, error) {
	for _, f := range formulas {
		if f.Tag == tag {
			return f, nil
		}
	}
	tags := tagsOf("")
	return FormulaInfo{}, fmt.Errorf("%w %q%s; known are %s", ErrUnknownFormula, tag, didYouMean(tag, tags), strings.Join(tags, ", "))
}

// FormulaOf is Formula for a tag that must be of the given kind. The error
// lists the tags of that kind.
func FormulaOf(kind Kind, tag string) (FormulaInfo, error) {
	if err := knownTag(kind, tag); err != nil {
		return FormulaInfo{}, fmt.Errorf("%w: %s version is %q, it must be %w", ErrUnknownFormula, kind, tag, err)
	}
	return Formula(tag)
}

// knownTag returns nil, or what the tag should have been, in words.
func knownTag(kind Kind, tag string) error {
	tags := tagsOf(kind)
	if slices.Contains(tags, tag) {
		return nil
	}
	hint := didYouMean(tag, tags)
	if f, err := Formula(tag); err == nil {
		hint = fmt.Sprintf(" (%q is of the kind %s)", tag, f.Kind)
	}
	return errors.New(orList(tags) + hint)
}

// tagsOf lists the tags of a kind, or all when kind is "".
func tagsOf(kind Kind) []string {
	var tags []string
	for _, f := range formulas {
		if kind == "" || f.Kind == kind {
			tags = append(tags, f.Tag)
		}
	}
	return tags
}
