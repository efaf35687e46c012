package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// conversationFlags are the flags of the commands that hold a conversation.
type conversationFlags struct {
	index, session, html string
	provider, graph      string
	policy, shadow, log  string
	clusters, reranker   string
	decayDifferences     bool
	arm                  armFlags
}

func (f *conversationFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.index, "index", "", "index directory made by mmplug index")
	cmd.Flags().StringVar(&f.provider, "provider", "", "URL of the store to ask instead of an index, such as qdrant://localhost:6334/pages (see mmplug adapters)")
	cmd.Flags().StringVar(&f.graph, "graph", "", "URL of the graph beside --provider, such as graph:pages.mmg (default that of the store)")
	cmd.Flags().StringVar(&f.session, "session", "", "file that keeps the conversation: continued if it exists, written after every turn")
	cmd.Flags().StringVar(&f.html, "html", "", "write the trace as an HTML page to this file")
	f.arm.add(cmd)
	cmd.Flags().StringVar(&f.policy, "policy", policy.Conversational, policyUsage)
	cmd.Flags().StringVar(&f.log, "shadow-log", "", "file to add what runs in shadow to (JSON lines)")
	cmd.Flags().BoolVar(&f.decayDifferences, "decay-differences", false, "note in the trace where decay_v1 and decay_exact_v1 differ")
	cmd.Flags().StringVar(&f.shadow, "shadow-policy", "", "policy to run in shadow: it answers too, and only the log gets to know")
	cmd.Flags().StringVar(&f.clusters, "clusters", "", "clusters made by mmplug graph cluster, a feature of the policy's section clustering")
	cmd.Flags().StringVar(&f.reranker, "reranker", "", "URL of the reranker for the policy's section rerank, such as plugin:overlap?dir=DIR")
	_ = cmd.MarkFlagDirname("index") // for completion; the flag is there
}

// conversation is a session on a corpus, with the texts to show.
type conversation struct {
	retriever *policy.Retriever
	policy    *usedPolicy
	shadow    *policy.Policy    // nil without one
	log       *policy.ShadowLog // nil without one
	corpus    searched
	model     *embedding          // nil when questions are not embedded
	reranker  mapmatched.Reranker // nil when the policy asks none
	flags     conversationFlags
	std       stdio
	input     chan line // standard input, once lines is called
	unlock    func()    // gives the session file back, nil without one
}

// errHeld: another process holds a conversation.
var errHeld = errors.New("another mmplug is holding this conversation: wait until it ends or use another session file")

// turn is what a program gets to know of a turn: the answer in the exchange
// form, with the question and the texts of what it names.
type turn struct {
	Query string `json:"query"`
	*mapmatched.Answer
	Pointwise *string           `json:"pointwise_chunk_id"` // what searching the turn alone finds
	Texts     map[string]string `json:"texts"`              // by chunk ID, for the context and the ranking
	Policy    namedPolicy       `json:"policy"`

	// What the active stages of a policy add.
	Activation policy.Activation `json:"activation,omitempty"`
	Context    []scoredChunk     `json:"context,omitempty"`     // the context with its scores, where decay makes it
	ScoreModel string            `json:"score_model,omitempty"` // of these scores
	Degraded   []string          `json:"degraded,omitempty"`    // what did not take part in the turn
	Reranked   *reranked         `json:"reranked,omitempty"`    // where the policy has a reranker look at the ranking
}

// namedPolicy is the policy in force.
type namedPolicy struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// scoredChunk is a chunk of a context with what its score was made of.
type scoredChunk struct {
	ChunkID    string             `json:"chunk_id"`
	Score      float64            `json:"score"`
	ScoreParts map[string]float64 `json:"score_parts,omitempty"`
}

// converse opens the index or the store and starts or continues a session.
func converse(ctx context.Context, std stdio, flags conversationFlags) (*conversation, error) {
	if err := flags.checkStoreFlags(); err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, path string }{{"session", flags.session}, {"html", flags.html}, {"shadow-log", flags.log}} {
		if f.path == "-" {
			return nil, usageError{fmt.Errorf("--%s: standard output has the answers already; name a file", f.name)}
		}
		if err := checkTarget(f.path); err != nil { // before any question is asked
			return nil, cannot("write", f.path, err)
		}
	}
	if flags.shadow != "" && flags.log == "" {
		return nil, usageError{errors.New("a shadow policy is only seen in a log: give --shadow-log FILE with --shadow-policy")}
	}
	used, err := usePolicy(flags.policy)
	if err != nil {
		return nil, err
	}
	ctx = used.trusting(ctx)
	if err := used.checkReranker(flags.reranker); err != nil {
		return nil, err
	}
	if used.Vectors.Provider != "" && flags.arm.arm != "" {
		return nil, usageError{fmt.Errorf("policy %s says by what arms passages are found: leave out --arm", used.Name)}
	}
	c := &conversation{policy: used, flags: flags, std: std}
	if flags.shadow != "" {
		shadow, err := usePolicy(flags.shadow)
		if err != nil {
			return nil, fmt.Errorf("shadow %w", err)
		}
		c.shadow = shadow.Policy
	}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// open opens what the conversation is about, and the model that embeds its
// questions.
func (c *conversation) open(ctx context.Context) (err error) {
	if c.flags.provider == "" {
		d := &indexDir{dir: c.flags.index}
		d.index, c.model, err = c.flags.arm.open(ctx, d.dir)
		c.corpus = d
		return err
	}
	if c.flags.arm.embed != "" {
		if c.model, err = openEmbedding(ctx, c.flags.arm.embed); err != nil {
			return err
		}
	}
	policies := []*policy.Policy{c.policy.Policy}
	if c.shadow != nil {
		policies = append(policies, c.shadow)
	}
	s, err := openStore(ctx, c.flags.provider, c.flags.graph, policies...)
	if err != nil {
		c.model.close()
		return err
	}
	c.corpus = s
	if most := c.policy.Fusion.Arms; c.policy.Vectors.Provider != "" && len(most) > 1 {
		c.warning(fmt.Sprintf("policy %s fuses %s; --provider is one list and asked alone", c.policy.Name, strings.Join(slices.Sorted(maps.Keys(most)), " and ")))
	}
	return nil
}

// warning tells of something that has no influence on whether there is an
// answer.
func (c *conversation) warning(text string) {
	fmt.Fprintln(c.std.err, "warning: "+oneLine(printable(text))) //nolint:errcheck // stderr may be gone
}

// start makes the session: a new one, or the one in the session file, which
// then is this conversation's until close.
func (c *conversation) start(ctx context.Context) error {
	parts, err := c.parts(ctx)
	if err != nil {
		return err
	}
	file := c.flags.session
	if file != "" {
		if file, err = followed(file); err != nil {
			return cannot("write", c.flags.session, err)
		}
		if c.unlock, err = disk.Lock(beside(file, "lock")); errors.Is(err, disk.ErrHeld) {
			return fmt.Errorf("%s: %w (the lock is %s)", c.flags.session, errHeld, beside(file, "lock"))
		} else if err != nil {
			return cannot("write", c.flags.session, err)
		}
	}
	info, err := os.Stat(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		c.retriever, err = policy.New(ctx, c.policy.Policy, parts)
		return err
	}
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, which a session needs; name another", c.flags.session)
	}
	c.retriever, err = readFile(ctx, c.std, file, func(r io.Reader) (*policy.Retriever, error) {
		return policy.Restore(ctx, r, c.policy.Policy, parts)
	})
	switch {
	case errors.Is(err, mapmatched.ErrStaleIndex):
		what := "index"
		if c.flags.provider != "" {
			what = "store"
		}
		return fmt.Errorf("%s: it belongs to another %s than %s, or to an earlier state of it; start a new session file", c.flags.session, what, c.corpus.name())
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%w; start a new session file", err)
	}
	return err
}

// parts are what the retriever is made of. The log is open then.
func (c *conversation) parts(ctx context.Context) (policy.Parts, error) {
	parts, err := c.corpus.parts(ctx, c.policy, c.model)
	if err != nil {
		return parts, err
	}
	if err := c.model.pinned(c.policy.Policy); err != nil {
		return parts, err
	}
	parts.DecayDifferences = c.flags.decayDifferences
	if c.reranker, err = openReranker(ctx, c.flags.reranker); err != nil {
		return parts, err
	}
	parts.Reranker = c.reranker
	if c.model != nil {
		parts.Embedder = c.model
	}
	if c.flags.clusters != "" {
		if parts.Clusters, err = clustersOf(ctx, c.std, c.flags.clusters); err != nil {
			return parts, err
		}
	}
	parts.Shadow = c.shadow
	if c.flags.log != "" {
		if c.log, err = policy.OpenShadowLog(c.flags.log, nil); err != nil {
			return parts, err
		}
		parts.Log = c.log
		if c.flags.session != "" {
			parts.Session = filepath.Base(c.flags.session)
		}
	}
	return parts, nil
}

// session is the decoded conversation.
func (c *conversation) session() *mapmatched.Session { return c.retriever.Session() }

func (c *conversation) close() {
	if c.retriever != nil {
		c.retriever.Close() //nolint:errcheck // it only waits
	}
	if c.log != nil {
		c.log.Close() //nolint:errcheck // every record is written already
	}
	closeAll(c.reranker)
	c.corpus.close()
	c.model.close()
	if c.unlock != nil {
		c.unlock()
	}
}

// asked is a question as it is searched and recorded, "" when there is none:
// without white space around it, and in UTF-8, which is what files hold.
func asked(text string) string {
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}

// ask decodes a question and saves the session, if it has a file. What is not as
// it should be but has no influence on the answer is a warning.
func (c *conversation) ask(ctx context.Context, question string) (*policy.Answer, error) {
	c.policy.warnOfChange(c.std.err)
	q := policy.Query{Text: question}
	if c.model != nil {
		vectors, err := c.model.Embed(ctx, []string{question})
		if err == nil && len(vectors) != 1 {
			err = fmt.Errorf("the embedder returned %d vectors for 1 text", len(vectors))
		}
		if err != nil {
			return nil, fmt.Errorf("cannot embed the question: %w", err)
		}
		q.Vector = vectors[0]
	}
	a, err := c.retriever.Ask(ctx, q)
	if c.flags.provider != "" && c.model == nil && lacksVector(err) {
		return nil, fmt.Errorf("%w; where the store searches vectors, --embed makes those of the questions", err)
	}
	if err != nil {
		return nil, err
	}
	for _, d := range a.Degraded {
		c.warning(d.String())
	}
	if a.Rerank != nil && a.Rerank.Err() != nil {
		c.warning(fmt.Sprintf("turn %d: %v", a.Turn, a.Rerank.Err()))
	}
	if a.LogErr != nil {
		c.warning(fmt.Sprintf("turn %d: %v", a.Turn, a.LogErr))
	}
	if c.flags.session != "" {
		err = writeFile(c.std, c.flags.session, c.retriever.Save)
	}
	return a, err
}

// lacksVector reports whether the error of a question is that it has no vector,
// which mapmatched.QueryVector says.
func lacksVector(err error) bool {
	var typed *mapmatched.Error
	return errors.As(err, &typed) && typed.Op == "embed" && typed.Kind == mapmatched.KindInvalid
}

// turn gathers what a program gets to know of the latest turn.
func (c *conversation) turn(ctx context.Context, question string, a *policy.Answer) (*turn, error) {
	r := a.Result
	t := &turn{Query: question, Answer: mapmatched.NewAnswer(c.session(), r), Texts: map[string]string{},
		Policy: namedPolicy{a.PolicyName, a.PolicyDigest}, ScoreModel: a.ContextModel}
	if c.policy.Activation.Stage == policy.StageActive {
		t.Activation = a.Activation
	}
	for _, chunk := range a.Context {
		t.Context = append(t.Context, scoredChunk{chunk.ChunkID, chunk.Score, chunk.Parts})
	}
	for _, d := range a.Degraded {
		t.Degraded = append(t.Degraded, d.Arm)
	}
	t.Reranked = rerankedOf(a)
	if a.Alone != nil {
		t.Pointwise = &a.Alone.ChunkID
	}
	for _, ranked := range r.Ranking {
		t.Texts[ranked.ChunkID] = ranked.Text
	}
	return t, c.addTexts(ctx, t.Texts, r.ContextChunkIDs)
}

// addTexts adds to texts those of the chunks that have none there, as far as
// the corpus gives them.
func (c *conversation) addTexts(ctx context.Context, texts map[string]string, chunkIDs []string) error {
	from := c.corpus.chunks()
	missing := slices.AppendSeq(slices.Clone(chunkIDs), maps.Keys(texts))
	missing = slices.DeleteFunc(missing, func(id string) bool { return texts[id] != "" })
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if from == nil || len(missing) == 0 {
		return nil
	}
	chunks, err := from.Chunks(ctx, missing)
	for _, chunk := range chunks {
		texts[chunk.ID] = chunk.Text
	}
	return err
}

// writeHTML draws the conversation so far, if that was asked for.
func (c *conversation) writeHTML(ctx context.Context) error {
	if c.flags.html == "" {
		return nil
	}
	trace, texts := c.session().DetailedTrace(), map[string]string{}
	for i := range trace.Steps {
		for _, candidate := range trace.Steps[i].Candidates {
			texts[candidate.ChunkID] = candidate.Text
		}
	}
	if err := c.addTexts(ctx, texts, nil); err != nil {
		return err
	}
	for i := range trace.Steps {
		list := trace.Steps[i].Candidates
		for j := range list {
			list[j].Text = texts[list[j].ChunkID]
		}
	}
	return writeFile(c.std, c.flags.html, func(w io.Writer) error { return trace.WriteHTML(w, nil) })
}

// print shows a turn to a person: the decoded chunk, what searching the turn
// alone would have found, and the next in the ranking.
func (c *conversation) print(ctx context.Context, question string, a *policy.Answer, next int) error {
	r := a.Result
	s := styleFor(c.std.out)
	width := lineWidth(c.std.out)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.bold(fmt.Sprintf("[%d]", r.Turn+1)), s.bold(snippet(question, width-6)))
	if r.Gap != "" {
		why := "no passage has any of these words"
		if c.flags.provider != "" {
			why = "the store finds no passage"
		}
		fmt.Fprintf(&b, "    %s\n", s.dim(why+"; the conversation goes on as before"))
		_, err := io.WriteString(c.std.out, b.String())
		return err
	}
	if a.Activation != policy.Emit {
		fmt.Fprintf(&b, "    %s\n", s.dim(fmt.Sprintf("%s: the policy shows no passage at confidence %.2f", a.Activation, r.Confidence)))
		_, err := io.WriteString(c.std.out, b.String())
		return err
	}
	best, texts := a.Alone, map[string]string{r.ChunkID: r.Decoded().Text}
	if best == nil { // the context found something, the words of the turn did not
		best = &mapmatched.Candidate{ChunkID: r.ChunkID}
	} else if texts[best.ChunkID] == "" {
		texts[best.ChunkID] = best.Text
	}
	if err := c.addTexts(ctx, texts, nil); err != nil {
		return err
	}
	passage := func(label, chunkID, note string) {
		fmt.Fprintf(&b, "    %s %s%s\n", label, printable(chunkID), note)
		fmt.Fprintf(&b, "      %s\n", s.dim(snippet(texts[chunkID], width-8)))
	}
	passage(s.green("decoded  "), r.ChunkID, fmt.Sprintf("  (confidence %.2f)", r.Confidence))
	if best.ChunkID != r.ChunkID {
		passage(s.red("alone    "), best.ChunkID, "  (what this question finds without the conversation)")
	}
	if a.Alone == nil {
		fmt.Fprintf(&b, "    %s\n", s.dim("alone     no passage has any of these words: what is shown comes from the conversation"))
	}
	for i, ranked := range r.Ranking[1:min(1+next, len(r.Ranking))] {
		if ranked.ChunkID != best.ChunkID {
			fmt.Fprintf(&b, "    %s\n", s.dim(fmt.Sprintf("then %d    %s", i+2, printable(ranked.ChunkID))))
		}
	}
	if len(r.RevisedPriorIndices) > 0 {
		path := c.session().Path()
		for _, i := range r.RevisedPriorIndices {
			fmt.Fprintf(&b, "    %s\n", s.dim(fmt.Sprintf("turn %d is now %s", i+1, printable(path[i]))))
		}
	}
	if _, err := io.WriteString(c.std.out, b.String()); err != nil {
		return err
	}
	return c.printReranked(a, 1+next)
}
