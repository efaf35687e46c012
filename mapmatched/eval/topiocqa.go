package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// topiTurn is a turn of TopiOCQA.
type topiTurn struct {
	Conversation *int         `json:"Conversation_no"`
	Turn         *int         `json:"Turn_no"`
	Question     string       `json:"Question"`
	Answer       string       `json:"Answer"`
	Topic        string       `json:"Topic"`
	Section      string       `json:"Topic_section"`
	Rationale    string       `json:"Rationale"`
	Gold         *topiPassage `json:"Gold_passage"`
	Additional   []topiAnswer `json:"Additional_answers"`
}

type topiPassage struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

type topiAnswer struct {
	Topic     string       `json:"Topic"`
	Section   string       `json:"Topic_section"`
	Rationale string       `json:"Rationale"`
	Gold      *topiPassage `json:"Gold_passage"`
}

// LoadTopiOCQA reads conversations of TopiOCQA, a JSON array or JSON lines of
// turns. As the form has no corpus, the passages that it mentions are one: the
// gold passage of each turn, and where there is none the rationale, for the
// answer and for the additional answers. All of them are gold of their turn. A
// rationale that is part of a gold passage of the same topic stands for that
// passage. Passages of a topic are ordered by the number in their ID, or by
// their digest, never by the conversation.
func LoadTopiOCQA(ctx context.Context, file string) (*Data, error) {
	d := &Data{Format: "topiocqa", Name: nameOf(file)}
	read, err := openFile(ctx, file, func(f *reading) (err error) {
		d.Corpus, d.Conversations, err = readTopiOCQA(f, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.Files = []File{read}
	return d, nil
}

// topiMention is a passage as a turn mentions it.
type topiMention struct{ id, topic, section, text string }

// readTopiOCQA reads r, which errors call name.
func readTopiOCQA(r io.Reader, name string) (*Corpus, []Conversation, error) {
	var conversations []Conversation
	var mentions [][][]topiMention // by conversation and turn
	topic, number, turn := "", 0, 0
	seen := map[int]bool{}
	err := readObjects(r, name, func(t topiTurn) error {
		switch {
		case t.Conversation == nil || t.Turn == nil:
			return fmt.Errorf("a turn has no Conversation_no or no Turn_no")
		case strings.TrimSpace(t.Question) == "":
			return fmt.Errorf("conversation %d, turn %d: it has no Question", *t.Conversation, *t.Turn)
		}
		if len(conversations) == 0 || *t.Conversation != number {
			if seen[*t.Conversation] {
				return fmt.Errorf("conversation %d occurs twice", *t.Conversation)
			}
			number, turn, topic = *t.Conversation, 0, t.Topic
			seen[number] = true
			conversations = append(conversations, Conversation{ID: strconv.Itoa(number)})
			mentions = append(mentions, nil)
		}
		if *t.Turn <= turn {
			return fmt.Errorf("conversation %d: turn %d comes after turn %d: turns are numbered upwards from 1", number, *t.Turn, turn)
		}
		turn = *t.Turn
		c := &conversations[len(conversations)-1]
		c.Turns = append(c.Turns, Turn{Query: t.Question, Answer: t.Answer, TopicSwitch: t.Topic != topic})
		topic = t.Topic
		list := topiMentions(nil, t.Topic, t.Section, t.Rationale, t.Gold)
		for _, a := range t.Additional {
			list = topiMentions(list, a.Topic, a.Section, a.Rationale, a.Gold)
		}
		mentions[len(mentions)-1] = append(mentions[len(mentions)-1], list)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	corpus, resolve, err := topiCorpus(mentions)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	b := conversationsBuilder{seen: map[string]bool{}}
	for i := range conversations {
		for t := range conversations[i].Turns {
			gold := &conversations[i].Turns[t].Gold
			for _, m := range mentions[i][t] {
				id := resolve(m)
				if !slices.ContainsFunc(*gold, func(g Gold) bool { return g.ChunkID == id }) {
					*gold = append(*gold, Gold{ChunkID: id, Grade: 1})
				}
			}
		}
		if err := b.add(corpus, conversations[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	list, err := b.conversations()
	return corpus, list, err
}

// topiMentions adds the passage of an answer, if it has one.
func topiMentions(list []topiMention, topic, section, rationale string, gold *topiPassage) []topiMention {
	if gold != nil && strings.TrimSpace(gold.Text) != "" {
		// The title of a passage is that of its article and section.
		title, under, _ := strings.Cut(gold.Title, "[SEP]")
		return append(list, topiMention{gold.ID, cmp.Or(strings.TrimSpace(title), topic), cmp.Or(strings.TrimSpace(under), section), gold.Text})
	}
	if text := strings.TrimSpace(rationale); text != "" && !strings.EqualFold(text, "unanswerable") {
		return append(list, topiMention{"", topic, section, text})
	}
	return list
}

// topiCorpus makes the corpus of all mentions, and returns what finds the chunk
// of one.
func topiCorpus(mentions [][][]topiMention) (*Corpus, func(topiMention) string, error) {
	type article struct{ passages, rationales []topiMention }
	articles := map[string]*article{}
	var order []string
	ids := map[topiMention]string{}
	for _, conversation := range mentions {
		for _, m := range slices.Concat(conversation...) {
			a := articles[m.topic]
			if a == nil {
				a = &article{}
				articles[m.topic] = a
				order = append(order, m.topic)
			}
			if m.id != "" {
				a.passages = append(a.passages, m)
			} else {
				a.rationales = append(a.rationales, m)
			}
		}
	}
	slices.Sort(order)
	b := newCorpusBuilder()
	for _, topic := range order {
		a := articles[topic]
		var chunks []topiMention
		place := func(m topiMention, id string) {
			if ids[m] != "" {
				return
			}
			ids[m] = id
			if !slices.ContainsFunc(chunks, func(c topiMention) bool { return c.id == id }) {
				m.id = id
				chunks = append(chunks, m)
			}
		}
		for _, m := range a.passages {
			place(m, m.id)
		}
		for _, m := range a.rationales {
			id := fmt.Sprintf("%s#%.6x", topic, sha256.Sum256([]byte(m.section+"\x00"+m.text)))
			if whole := slices.IndexFunc(chunks, func(c topiMention) bool { return strings.Contains(c.text, m.text) }); whole >= 0 {
				id = chunks[whole].id
			}
			place(m, id)
		}
		slices.SortFunc(chunks, func(x, y topiMention) int {
			return cmp.Or(cmp.Compare(idNumber(x.id), idNumber(y.id)), strings.Compare(x.id, y.id))
		})
		for i, c := range chunks {
			document := cmp.Or(topic, c.id)
			err := b.add(Chunk{Chunk: mapmatched.Chunk{ID: c.id, Document: document, Title: topic, Section: c.section, Ordinal: i, Text: c.text}})
			if err != nil {
				return nil, nil, err
			}
		}
	}
	corpus, err := b.corpus()
	return corpus, func(m topiMention) string { return ids[m] }, err
}

// idNumber is the number at the end of a passage's ID, past all others for an ID
// without one, and for one made of a digest.
func idNumber(id string) uint64 {
	digits := len(id)
	for digits > 0 && id[digits-1] >= '0' && id[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.ParseUint(id[digits:], 10, 64)
	if err != nil || strings.Contains(id, "#") {
		return 1<<64 - 1
	}
	return n
}
