package policy

// Proposals is the section "proposals": candidates that the graph proposes,
// beside those that the turn is searched for. A follow-up is often answered
// near the last answer by a chunk that has none of its words.
type Proposals struct {
	// Version is the tag of the formula: proposals_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default; the graph proposes nothing), shadow or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// Survivors is how many chunks of the turn before, best ranked first, are
	// proposed with their neighbourhoods. ≥ 1; default 10.
	Survivors int `koanf:"survivors" json:"survivors"`
	// Radius of a neighbourhood, in graph distance. Finite, ≥ 0; default 2; 0
	// proposes the survivors alone.
	Radius float64 `koanf:"radius" json:"radius"`
	// Limit is the most chunks that are proposed for a turn, in addition to
	// decode.candidate_limit. ≥ 1; default 50.
	Limit int `koanf:"limit" json:"limit"`
}

// DefaultProposals returns the defaults of the section "proposals".
func DefaultProposals() Proposals {
	return Proposals{Version: ProposalsV1, Stage: StageOff, Survivors: 10, Radius: 2, Limit: 50}
}

// Validate reports every fault of the section.
func (o *Proposals) Validate() error {
	f := faults{section: "proposals"}
	f.version(KindProposals, o.Version)
	f.stage("stage", o.Stage)
	f.count("survivors", o.Survivors, 1)
	f.notNegative("radius", o.Radius)
	f.count("limit", o.Limit, 1)
	return f.err()
}
