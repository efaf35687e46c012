package adaptertest

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Corpus is what a store under test holds, and what it will be asked.
type Corpus struct {
	Chunks  []mapmatched.Chunk
	Vectors [][]float32        // one for each chunk, of length 1, as Embed makes them
	Queries []mapmatched.Query // every query of the suite, with text, vector and Turn = index

	want [][]string // chunks that may come first for a query, nil where none has to
}

// Names of the queries that are not merely looked up.
const (
	tieText   = "lanterns float at midnight" // matches two chunks of the same text
	noHitText = "zzyzx qwrtz"                // matches nothing
)

// NewCorpus returns the corpus of the suite: a dozen chunks of plain words in
// four documents. Every call returns the same one.
func NewCorpus() Corpus {
	var c Corpus
	ordinal, end := map[string]int{}, map[string]int{}
	for _, line := range [][4]string{
		{"roads/network", "roads", "Networks", "A road network joins junctions by road segments."},
		{"roads/tunnel", "roads", "Crossings", "A tunnel carries the road beneath the mountain."},
		{"roads/bridge", "roads", "Crossings", "A suspension bridge hangs the road from steel cables."},
		{"roads/ferry", "roads", "Crossings", "Where no road spans the fjord a ferry sails every hour."},
		{"roads/toll", "roads", "Money", "Drivers pay a toll in coins at the road barrier."},
		{"orchard/apple", "orchard", "Trees", "Apple trees blossom in spring and bear fruit in autumn."},
		{"orchard/bees", "orchard", "Animals", "Bees visit the blossom and store honey in the hive."},
		{"town/harbour east", "town", "Festival", "Paper lanterns float across the harbour at midnight."},
		{"town/harbour west", "town", "Festival", "Paper lanterns float across the harbour at midnight."},
		{"town/clock", "town", "Trades", "The clockmaker repairs pendulum clocks in a narrow workshop."},
		{`town/"notice"`, "town", "Trades", `The notice reads: say "good evening" to the lighthouse keeper; 100% true.`},
		{"poems/故乡", "poems", "", "故乡 小桥 流水"},
	} {
		id, document, section, text := line[0], line[1], line[2], line[3]
		start := end[document]
		c.Chunks = append(c.Chunks, mapmatched.Chunk{ID: id, Document: document, Title: strings.ToUpper(document[:1]) + document[1:],
			Section: section, Ordinal: ordinal[document], Start: start, End: start + len(text), Text: text})
		ordinal[document]++
		end[document] = start + len(text) + 1 // a newline between chunks
	}
	for _, chunk := range c.Chunks {
		c.Vectors = append(c.Vectors, c.embed(chunk.Text))
	}
	ask := func(text string, want ...string) {
		c.Queries = append(c.Queries, mapmatched.Query{Text: text, Vector: c.embed(text), Turn: len(c.Queries)})
		c.want = append(c.want, want)
	}
	ask("tunnel beneath the mountain", "roads/tunnel")
	ask("suspension bridge with steel cables", "roads/bridge")
	ask("ferry over the fjord", "roads/ferry")
	ask("toll in coins", "roads/toll")
	ask("bees store honey", "orchard/bees")
	ask("pendulum workshop", "town/clock")
	ask(`say "good evening"`, `town/"notice"`)
	ask("故乡", "poems/故乡")
	ask(tieText, "town/harbour east", "town/harbour west")
	ask("road")
	ask("the road in the harbour")
	ask(noHitText)
	for _, text := range awkwardTexts {
		ask(text)
	}
	return c
}

// awkwardTexts have broken query languages and tokenizers.
var awkwardTexts = []string{
	`say "hi"\n\a`, "line\nbreak\tand tab", `Doc){x}} {Get{Secret`, "'; DROP TABLE chunks; --", `back\slash`,
	"%s %d {{.}}", "AND OR NOT ( ) : * ? ~", "\x01\x02\x7f", "🚀🚀", "e\u0301\u200b\ufeff", " \t ",
	strings.Repeat("long road ", 1000),
}

// vocabulary lists the words of the chunks in ascending order.
func (c Corpus) vocabulary() []string {
	var all []string
	for _, chunk := range c.Chunks {
		all = append(all, words(chunk.Text)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// embed counts the words of a text, one dimension for each word of the corpus
// and a last one for all others, and scales the result to length 1. A text
// without words is one unknown word.
func (c Corpus) embed(text string) []float32 {
	vocabulary := c.vocabulary()
	counts := make([]float64, len(vocabulary)+1)
	for _, w := range words(text) {
		i, known := slices.BinarySearch(vocabulary, w)
		if !known {
			i = len(vocabulary)
		}
		counts[i]++
	}
	var sum float64
	for _, n := range counts {
		sum += n * n
	}
	if sum == 0 {
		counts[len(vocabulary)], sum = 1, 1
	}
	v := make([]float32, len(counts))
	for i, n := range counts {
		v[i] = float32(n / math.Sqrt(sum))
	}
	return v
}

// Embed implements mapmatched.Embedder with the words of the corpus, for stores
// that embed by themselves.
func (c Corpus) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = c.embed(text)
	}
	return vectors, nil
}

// chunk finds a chunk by ID.
func (c Corpus) chunk(id string) (mapmatched.Chunk, bool) {
	i := slices.IndexFunc(c.Chunks, func(chunk mapmatched.Chunk) bool { return chunk.ID == id })
	if i < 0 {
		return mapmatched.Chunk{}, false
	}
	return c.Chunks[i], true
}

// query finds a query by text.
func (c Corpus) query(text string) mapmatched.Query {
	return c.Queries[slices.IndexFunc(c.Queries, func(q mapmatched.Query) bool { return q.Text == text })]
}

// ids lists the IDs of the chunks in the order of the corpus.
func (c Corpus) ids() []string {
	ids := make([]string, len(c.Chunks))
	for i, chunk := range c.Chunks {
		ids[i] = chunk.ID
	}
	return ids
}

// plain are the queries whose right answer comes first for sure.
func (c Corpus) plain() []mapmatched.Query {
	var out []mapmatched.Query
	for i, q := range c.Queries {
		if c.want[i] != nil {
			out = append(out, q)
		}
	}
	return out
}
