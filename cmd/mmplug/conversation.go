package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
)

// conversationFlags are the flags of the commands that hold a conversation.
type conversationFlags struct {
	index, session, html string
}

func (f *conversationFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.index, "index", "", "index directory made by mmplug index")
	cmd.Flags().StringVar(&f.session, "session", "", "file that keeps the conversation: continued if it exists, written after every turn")
	cmd.Flags().StringVar(&f.html, "html", "", "write the trace as an HTML page to this file")
	_ = cmd.MarkFlagDirname("index") // for completion; the flag is there
}

// conversation is a session on an index, with the texts to show.
type conversation struct {
	*mapmatched.Session
	index  *embedded.Index
	flags  conversationFlags
	std    stdio
	input  chan line // standard input, once lines is called
	unlock func()    // gives the session file back, nil without one
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
}

// converse opens the index and starts or continues a session.
func converse(ctx context.Context, std stdio, flags conversationFlags) (*conversation, error) {
	if flags.index == "" {
		return nil, usageError{errors.New("say which index to ask: --index IDX (made by mmplug index)")}
	}
	for _, f := range []struct{ name, path string }{{"session", flags.session}, {"html", flags.html}} {
		if f.path == "-" {
			return nil, usageError{fmt.Errorf("--%s: standard output has the answers already; name a file", f.name)}
		}
		if err := checkTarget(f.path); err != nil { // before any question is asked
			return nil, cannot("write", f.path, err)
		}
	}
	x, err := embedded.Open(ctx, flags.index, nil)
	if err != nil {
		return nil, err
	}
	c := &conversation{index: x, flags: flags, std: std}
	if err := c.start(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start makes the session: a new one, or the one in the session file, which
// then is this conversation's until close.
func (c *conversation) start(ctx context.Context) error {
	graph, err := c.index.Graph(ctx)
	if err != nil {
		return err
	}
	cfg := &mapmatched.Config{Corpus: c.index.Digest()}
	file := c.flags.session
	if file != "" {
		if file, err = followed(file); err != nil {
			return cannot("write", c.flags.session, err)
		}
		if c.unlock, err = lockFile(beside(file, "lock")); errors.Is(err, errHeld) {
			return fmt.Errorf("%s: %w", c.flags.session, err)
		} else if err != nil {
			return cannot("write", c.flags.session, err)
		}
	}
	info, err := os.Stat(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		c.Session, err = mapmatched.NewSession(c.index, graph, cfg)
		return err
	}
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, which a session needs; name another", c.flags.session)
	}
	c.Session, err = readFile(ctx, c.std, file, func(r io.Reader) (*mapmatched.Session, error) {
		return mapmatched.RestoreSession(r, c.index, graph, cfg)
	})
	switch {
	case errors.Is(err, mapmatched.ErrStaleIndex):
		return fmt.Errorf("%s: it belongs to another index than %s, or to an earlier state of it; start a new session file", c.flags.session, c.flags.index)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%w; start a new session file", err)
	}
	return err
}

func (c *conversation) close() {
	c.index.Close() //nolint:errcheck // only read
	if c.unlock != nil {
		c.unlock()
	}
}

// asked is a question as it is searched and recorded, "" when there is none:
// without white space around it, and in UTF-8, which is what files hold.
func asked(text string) string {
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}

// ask decodes a question and saves the session, if it has a file.
func (c *conversation) ask(ctx context.Context, question string) (*mapmatched.Result, error) {
	r, err := c.Ask(ctx, mapmatched.Query{Text: question})
	if err == nil && c.flags.session != "" {
		err = writeFile(c.std, c.flags.session, c.Save)
	}
	return r, err
}

// turn gathers what a program gets to know of the latest turn.
func (c *conversation) turn(ctx context.Context, question string, r *mapmatched.Result) (*turn, error) {
	t := &turn{Query: question, Answer: mapmatched.NewAnswer(c.Session, r), Texts: map[string]string{}}
	if best := r.Pointwise(); best != nil {
		t.Pointwise = &best.ChunkID
	}
	for _, ranked := range r.Ranking {
		t.Texts[ranked.ChunkID] = ranked.Text
	}
	chunks, err := c.index.Chunks(ctx, r.ContextChunkIDs)
	if err != nil {
		return nil, err
	}
	for _, chunk := range chunks {
		t.Texts[chunk.ID] = chunk.Text
	}
	return t, nil
}

// writeHTML draws the conversation so far, if that was asked for.
func (c *conversation) writeHTML(ctx context.Context) error {
	if c.flags.html == "" {
		return nil
	}
	trace := c.DetailedTrace()
	for i := range trace.Steps {
		list := trace.Steps[i].Candidates
		for j := range list {
			chunks, err := c.index.Chunks(ctx, []string{list[j].ChunkID})
			if err != nil {
				return err
			}
			if len(chunks) == 1 {
				list[j].Text = chunks[0].Text
			}
		}
	}
	return writeFile(c.std, c.flags.html, func(w io.Writer) error { return trace.WriteHTML(w, nil) })
}

// print shows a turn to a person: the decoded chunk, what searching the turn
// alone would have found, and the next in the ranking.
func (c *conversation) print(question string, r *mapmatched.Result, next int) error {
	s := styleFor(c.std.out)
	width := lineWidth(c.std.out)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.bold(fmt.Sprintf("[%d]", r.Turn+1)), s.bold(snippet(question, width-6)))
	if r.Gap != "" {
		fmt.Fprintf(&b, "    %s\n", s.dim("no passage has any of these words; the conversation goes on as before"))
		_, err := io.WriteString(c.std.out, b.String())
		return err
	}
	passage := func(label string, ranked mapmatched.Ranked, note string) {
		fmt.Fprintf(&b, "    %s %s%s\n", label, printable(ranked.ChunkID), note)
		fmt.Fprintf(&b, "      %s\n", s.dim(snippet(ranked.Text, width-8)))
	}
	best := r.Pointwise()
	passage(s.green("decoded  "), *r.Decoded(), fmt.Sprintf("  (confidence %.2f)", r.Confidence))
	if best.ChunkID != r.ChunkID {
		passage(s.red("alone    "), *best, "  (what this question finds without the conversation)")
	}
	for i, ranked := range r.Ranking[1:min(1+next, len(r.Ranking))] {
		if ranked.ChunkID != best.ChunkID {
			fmt.Fprintf(&b, "    %s\n", s.dim(fmt.Sprintf("then %d    %s", i+2, printable(ranked.ChunkID))))
		}
	}
	if len(r.RevisedPriorIndices) > 0 {
		path := c.Path()
		for _, i := range r.RevisedPriorIndices {
			fmt.Fprintf(&b, "    %s\n", s.dim(fmt.Sprintf("turn %d is now %s", i+1, printable(path[i]))))
		}
	}
	_, err := io.WriteString(c.std.out, b.String())
	return err
}
