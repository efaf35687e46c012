package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// SyntheticOptions are the settings of Synthetic. In each number 0 means the
// default.
type SyntheticOptions struct {
	Seed          uint64 // of math/rand/v2 PCG; default 1
	Documents     int    // default 40
	Sections      int    // of a document; default 5
	Chunks        int    // of a section; default 3
	Conversations int    // default 60
	Turns         int    // of a conversation; default 8
}

// Validate reports every value that is out of range.
func (o *SyntheticOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{{"documents", o.Documents, 10_000}, {"sections", o.Sections, 100}, {"chunks", o.Chunks, 100},
		{"conversations", o.Conversations, 100_000}, {"turns", o.Turns, 1000}} {
		if n.value < 0 || n.value > n.most {
			errs = append(errs, fmt.Errorf("synthetic %s is %d: it is between 1 and %d, or 0 for the default", n.name, n.value, n.most))
		}
	}
	return errors.Join(errs...)
}

// syntheticStream is the second seed of the generator.
const syntheticStream = 0x73796e7468657469

// The shares of what a synthetic conversation does next: the same chunk again, a
// next chunk, another of the same section, another of the same document, and
// else another document.
const (
	syntheticStay     = 0.25
	syntheticNext     = 0.60
	syntheticSection  = 0.75
	syntheticDocument = 0.90
)

// Synthetic makes a data set of known structure from a seed. Every document is
// about a thing of its own, every section about an aspect that all documents
// share, and every chunk about a detail that many chunks share: so a detail alone
// is ambiguous, and the conversation tells which is meant. A conversation begins
// with a question that names the thing and the detail, and walks on: mostly to
// the same or a near chunk, with a question that names the detail and refers to
// the thing by a pronoun; sometimes to another document, whose thing it names.
func Synthetic(opts *SyntheticOptions) (*Data, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	o := SyntheticOptions{}
	if opts != nil {
		o = *opts
	}
	for _, n := range []struct {
		value    *int
		fallback int
	}{{&o.Documents, 40}, {&o.Sections, 5}, {&o.Chunks, 3}, {&o.Conversations, 60}, {&o.Turns, 8}} {
		if *n.value == 0 {
			*n.value = n.fallback
		}
	}
	if o.Seed == 0 {
		o.Seed = DefaultSeed
	}
	g := &generator{SyntheticOptions: o, random: rand.New(rand.NewPCG(o.Seed, syntheticStream)), used: map[string]bool{}}
	d := &Data{Name: fmt.Sprintf("synthetic seed %d", o.Seed), Format: "synthetic"}
	var err error
	if d.Corpus, err = g.corpus(); err != nil {
		return nil, err
	}
	h := newDigest(d.Corpus.Digest())
	for i := range o.Conversations {
		d.Conversations = append(d.Conversations, g.conversation(i))
		h.conversation(&d.Conversations[i])
	}
	sum := sha256.Sum256(h.sum())
	d.Files = []File{{Name: fmt.Sprintf("synthetic_v1 %+v", o), SHA256: hex.EncodeToString(sum[:])}}
	return d, nil
}

// generator makes a synthetic data set.
type generator struct {
	SyntheticOptions
	random *rand.Rand
	used   map[string]bool

	things, aspects []string
	details         [][]string // by chunk
	chunks          []Chunk
}

// word makes a new word of a few syllables.
func (g *generator) word() string {
	for syllables := 3; ; syllables++ {
		var b strings.Builder
		for range syllables {
			b.WriteByte("bdfgklmnprstvz"[g.random.IntN(14)])
			b.WriteByte("aeiou"[g.random.IntN(5)])
		}
		if w := b.String(); !g.used[w] {
			g.used[w] = true
			return w
		}
	}
}

func (g *generator) words(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = g.word()
	}
	return list
}

// some draws n of a list, each at most once.
func (g *generator) some(list []string, n int) []string {
	drawn := make([]string, 0, n)
	for _, i := range g.random.Perm(len(list))[:min(n, len(list))] {
		drawn = append(drawn, list[i])
	}
	return drawn
}

func (g *generator) corpus() (*Corpus, error) {
	g.things, g.aspects = g.words(g.Documents), g.words(g.Sections)
	details, filler := g.words(4*g.Sections*g.Chunks), g.words(300)
	for d, thing := range g.things {
		ordinal := 0
		for _, aspect := range g.aspects {
			for range g.Chunks {
				own := g.some(details, 4)
				g.details = append(g.details, own)
				sentence := slices.Concat(own, g.some(filler, 24))
				if g.random.IntN(3) == 0 { // most chunks do not say again what they are about
					sentence = append(sentence, thing)
				}
				g.random.Shuffle(len(sentence), func(i, j int) { sentence[i], sentence[j] = sentence[j], sentence[i] })
				g.chunks = append(g.chunks, Chunk{Chunk: mapmatched.Chunk{
					ID: fmt.Sprintf("doc%d#%d", d, ordinal), Document: fmt.Sprintf("doc%d", d), Title: thing, Section: aspect,
					Ordinal: ordinal, Text: strings.Join(sentence, " ") + "."}})
				ordinal++
			}
		}
	}
	return NewCorpus(g.chunks)
}

// conversation walks through the corpus.
func (g *generator) conversation(number int) Conversation {
	c := Conversation{ID: fmt.Sprintf("walk%d", number)}
	perDocument := g.Sections * g.Chunks
	at := g.random.IntN(len(g.chunks))
	for t := range g.Turns {
		before := at
		if t > 0 {
			at = g.step(at)
		}
		moved := t > 0 && at/perDocument != before/perDocument
		named := t == 0 || moved
		detail := g.some(g.details[at], 1)[0]
		query := fmt.Sprintf("And what about its %s?", detail)
		if named {
			query = fmt.Sprintf("What is the %s of %s?", detail, g.things[at/perDocument])
		}
		c.Turns = append(c.Turns, Turn{Query: query, Answer: g.chunks[at].Text, Gold: []Gold{{ChunkID: g.chunks[at].ID, Grade: 1}},
			Standalone: new(named), TopicSwitch: moved, ChunkRepeat: t > 0 && at == before})
	}
	return c
}

// step is where a conversation goes on.
func (g *generator) step(at int) int {
	perDocument := g.Sections * g.Chunks
	document, inside := at/perDocument, at%perDocument
	section := inside / g.Chunks
	switch x := g.random.Float64(); {
	case x < syntheticStay:
		return at
	case x < syntheticNext && inside+1 < perDocument:
		return at + 1
	case x < syntheticSection:
		return document*perDocument + section*g.Chunks + g.random.IntN(g.Chunks)
	case x < syntheticDocument:
		return document*perDocument + g.random.IntN(perDocument)
	}
	return g.random.IntN(len(g.chunks))
}
