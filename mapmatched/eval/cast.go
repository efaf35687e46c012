package eval

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// castTopic is a topic of TREC CAsT, which is a conversation.
type castTopic struct {
	Number *int       `json:"number"`
	Turns  []castTurn `json:"turn"`
}

type castTurn struct {
	Number    *int   `json:"number"`
	Raw       string `json:"raw_utterance"`
	Manual    string `json:"manual_rewritten_utterance"`
	Automatic string `json:"automatic_rewritten_utterance"`
	Passage   string `json:"passage"` // the reply, since 2021
}

// CAsTFiles are the files of a year of TREC CAsT.
type CAsTFiles struct {
	Topics   string // JSON array of topics, of the years 2019 to 2021
	Passages string // what competes: JSON lines with id, text or contents, and title; or id, tab, text
	Qrels    string // "topic_turn 0 passage grade"
	Rewrites string // "topic_turn, tab, query": resolved utterances of 2019; "" for none
}

// LoadCAsT reads a year of TREC CAsT. The collections themselves are too large
// for a benchmark in memory: give the judged passages. Rewrites are the manual
// ones, or where there is none the automatic ones. Every gold passage is in the
// corpus; grades are kept.
func LoadCAsT(ctx context.Context, files CAsTFiles) (*Data, error) {
	d := &Data{Format: "cast", Name: nameOf(files.Topics)}
	err := d.readAll(ctx, func() (string, lineReader) { return files.Passages, passages(&d.Corpus) })
	if err != nil {
		return nil, err
	}
	j := newJudgements(d.Corpus)
	rewrites := map[string]string{}
	err = d.readAll(ctx,
		func() (string, lineReader) { return files.Qrels, trecQrels(j) },
		func() (string, lineReader) { return files.Rewrites, rewrittenQueries(rewrites) })
	if err != nil {
		return nil, err
	}
	b := conversationsBuilder{seen: map[string]bool{}}
	known := map[string]bool{}
	topics, err := openFile(ctx, files.Topics, func(f *reading) error {
		return readObjects(f, files.Topics, func(t castTopic) error {
			c, err := t.conversation(j, rewrites, known)
			if err != nil {
				return err
			}
			return b.add(d.Corpus, c)
		})
	})
	if err != nil {
		return nil, err
	}
	d.Files = append(d.Files, topics)
	if d.Conversations, err = b.conversations(); err != nil {
		return nil, fmt.Errorf("%s: %w", files.Topics, err)
	}
	if err := j.unknown(known); err != nil {
		return nil, fmt.Errorf("%s: %w", files.Qrels, err)
	}
	return d, nil
}

func (t *castTopic) conversation(j *judgements, rewrites map[string]string, known map[string]bool) (Conversation, error) {
	if t.Number == nil {
		return Conversation{}, fmt.Errorf("a topic has no number")
	}
	c := Conversation{ID: strconv.Itoa(*t.Number)}
	last := 0
	for _, turn := range t.Turns {
		if turn.Number == nil || *turn.Number <= last {
			return c, fmt.Errorf("topic %d: turns are numbered upwards from 1", *t.Number)
		}
		last = *turn.Number
		query := fmt.Sprintf("%d_%d", *t.Number, last)
		known[query] = true
		rewrite := firstOf(rewrites[query], firstOf(turn.Manual, turn.Automatic))
		c.Turns = append(c.Turns, Turn{Query: strings.TrimSpace(turn.Raw), Answer: turn.Passage, Rewrite: strings.TrimSpace(rewrite), Gold: j.gold[query]})
	}
	return c, nil
}
