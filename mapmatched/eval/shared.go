package eval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// sharedChunk is a line of corpus.jsonl.
type sharedChunk struct {
	ID      string   `json:"id"`
	Doc     string   `json:"doc"`
	Domain  string   `json:"domain"`
	Title   string   `json:"title"`
	Section string   `json:"section"`
	Ordinal *int     `json:"ordinal"`
	Start   int      `json:"start"`
	End     int      `json:"end"`
	Text    string   `json:"text"`
	Links   []string `json:"links"`
}

// sharedCorpus reads the lines of corpus.jsonl.
func sharedCorpus(out **Corpus) lineReader {
	b := newCorpusBuilder()
	return func(line []byte) (err error) {
		if line == nil {
			*out, err = b.corpus()
			return err
		}
		var c sharedChunk
		if err := decodeLine(line, &c); err != nil {
			return err
		}
		if c.Ordinal == nil {
			return fmt.Errorf("chunk %q has no ordinal", c.ID)
		}
		return b.add(Chunk{mapmatched.Chunk{ID: c.ID, Document: c.Doc, Title: c.Title, Section: c.Section,
			Ordinal: *c.Ordinal, Start: c.Start, End: c.End, Text: c.Text}, c.Domain, c.Links})
	}
}

// sharedConversation is a line of conversations.jsonl.
type sharedConversation struct {
	ID       string       `json:"conversation_id"`
	Domain   string       `json:"domain"`
	DocScope string       `json:"doc_scope"`
	Split    string       `json:"split"`
	Turns    []sharedTurn `json:"turns"`
}

type sharedTurn struct {
	Turn        *int     `json:"turn"`
	Query       string   `json:"query"`
	Answer      string   `json:"answer"`
	Rewrite     string   `json:"rewrite"`
	Rewritten   string   `json:"rewritten_query"` // the other name that sets have for it
	Gold        []string `json:"gold"`
	Equivalent  []string `json:"gold_equivalent"`
	Standalone  *bool    `json:"standalone"`
	TopicSwitch bool     `json:"topic_switch"`
	ChunkRepeat bool     `json:"chunk_repeat"`
	Seam        bool     `json:"seam"`
	SeamKind    string   `json:"seam_kind"`
}

// sharedConversations reads the lines of conversations.jsonl.
func sharedConversations(corpus *Corpus, out *[]Conversation) lineReader {
	b := conversationsBuilder{seen: map[string]bool{}}
	return func(line []byte) (err error) {
		if line == nil {
			*out, err = b.conversations()
			return err
		}
		var s sharedConversation
		if err := decodeLine(line, &s); err != nil {
			return err
		}
		c := Conversation{ID: s.ID, Domain: s.Domain, Document: s.DocScope, Split: s.Split}
		last := 0
		for i, t := range s.Turns {
			where := fmt.Sprintf("conversation %q, turn %d", s.ID, i+1)
			switch {
			case t.Turn == nil:
				return fmt.Errorf("%s: it has no number", where)
			case *t.Turn <= last:
				return fmt.Errorf("%s: its number is %d: turns are numbered upwards from 1", where, *t.Turn)
			case len(t.Gold) == 0 && len(t.Equivalent) > 0:
				return fmt.Errorf("%s: gold_equivalent without gold", where)
			case t.SeamKind != "" && t.SeamKind != "switch" && t.SeamKind != "return":
				return fmt.Errorf("%s: seam_kind is %q: it is switch or return", where, t.SeamKind)
			}
			last = *t.Turn
			turn := Turn{Query: t.Query, Answer: t.Answer, Rewrite: cmp.Or(t.Rewrite, t.Rewritten), Standalone: t.Standalone,
				TopicSwitch: t.TopicSwitch, ChunkRepeat: t.ChunkRepeat}
			if t.Seam {
				turn.SeamKind = t.SeamKind
			}
			for _, id := range t.Gold {
				turn.Gold = append(turn.Gold, Gold{ChunkID: id, Grade: 1})
			}
			if err := addEquivalents(corpus, turn.Gold, t.Equivalent); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
			c.Turns = append(c.Turns, turn)
		}
		return b.add(corpus, c)
	}
}

// addEquivalents gives each equivalent chunk to the first gold of the same text,
// or to the first gold when the text of none is the same.
func addEquivalents(corpus *Corpus, gold []Gold, equivalents []string) error {
	for _, id := range equivalents {
		chunk := corpus.Find(id)
		if chunk == nil {
			return fmt.Errorf("gold_equivalent %q is no chunk of the corpus", id)
		}
		if slices.ContainsFunc(gold, func(g Gold) bool { return g.ChunkID == id || slices.Contains(g.Equivalents, id) }) {
			continue // counts as a hit already
		}
		own := slices.IndexFunc(gold, func(g Gold) bool {
			other := corpus.Find(g.ChunkID)
			return other != nil && strings.TrimSpace(other.Text) == strings.TrimSpace(chunk.Text)
		})
		gold[max(own, 0)].Equivalents = append(gold[max(own, 0)].Equivalents, id)
	}
	return nil
}

// conversationsBuilder checks conversations one by one.
type conversationsBuilder struct {
	list []Conversation
	seen map[string]bool
}

func (b *conversationsBuilder) add(corpus *Corpus, c Conversation) error {
	switch {
	case c.ID == "":
		return errors.New("a conversation has no ID")
	case b.seen[c.ID]:
		return fmt.Errorf("conversation %q occurs twice", c.ID)
	case len(c.Turns) == 0:
		return fmt.Errorf("conversation %q has no turns", c.ID)
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		if strings.TrimSpace(t.Query) == "" {
			return fmt.Errorf("conversation %q, turn %d: it has no query", c.ID, i+1)
		}
		seen := map[string]bool{}
		for _, g := range t.Gold {
			switch {
			case corpus.Find(g.ChunkID) == nil:
				return fmt.Errorf("conversation %q, turn %d: gold %q is no chunk of the corpus", c.ID, i+1, g.ChunkID)
			case seen[g.ChunkID]:
				return fmt.Errorf("conversation %q, turn %d: gold %q is given twice", c.ID, i+1, g.ChunkID)
			}
			seen[g.ChunkID] = true
		}
	}
	b.seen[c.ID] = true
	b.list = append(b.list, c)
	return nil
}

func (b *conversationsBuilder) conversations() ([]Conversation, error) {
	if len(b.list) == 0 {
		return nil, errors.New("there are no conversations")
	}
	return b.list, nil
}
