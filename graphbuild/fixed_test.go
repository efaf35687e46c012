package graphbuild

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
)

func TestChunkFixedBytes(t *testing.T) {
	doc := Document{ID: "d", Text: strings.Repeat("äöü🚀混合检索", 50)}
	c, err := ChunkFixed(doc, UnitBytes, nil, &TokenOptions{Limit: 7})
	if err != nil {
		t.Fatal(err)
	}
	checkCover(t, doc, c)
	for _, chunk := range c.Chunks {
		next := 0
		for i, r := range doc.Text[chunk.End:] {
			if i > 0 {
				break
			}
			next = len(string(r))
		}
		if n := len(chunk.Text); n > 7 || next > 0 && n+next <= 7 {
			t.Errorf("chunk %d is %q, with %d bytes", chunk.Ordinal, chunk.Text, n)
		}
	}
}

func TestChunkFixedTokens(t *testing.T) {
	for _, model := range paraTokenizers {
		t.Run(model, func(t *testing.T) {
			tok := testTokenizer(t, model)
			r := rand.New(rand.NewPCG(3, 4))
			for range 60 {
				doc := Document{ID: "d", Text: randomText(r, 120)}
				limit := 8 + r.IntN(40)
				c, err := ChunkFixed(doc, UnitTokens, tok, &TokenOptions{Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				checkCover(t, doc, c)
				for _, chunk := range c.Chunks {
					if n := count(t, tok, chunk.Text); n > limit {
						t.Fatalf("chunk %q has %d tokens, more than %d", chunk.Text, n, limit)
					}
				}
			}
		})
	}
	c, err := ChunkFixed(Document{ID: "d", Text: "a b c d\ne"}, UnitTokens, testTokenizer(t, "wordpiece-uncased"), &TokenOptions{Limit: 2})
	if err != nil || len(c.Chunks) != 3 || c.Chunks[0].Text != "a b " || c.Chunks[2].Text != "e" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestChunkFixedErrors(t *testing.T) {
	tok := testTokenizer(t, "wordpiece-uncased")
	for _, test := range []struct {
		doc   Document
		unit  Unit
		tok   *tokenizer.Tokenizer
		limit int
		want  string
	}{
		{Document{ID: "d", Text: "x"}, UnitTokens, nil, 5, "need a tokenizer"},
		{Document{ID: "d", Text: "x"}, UnitBytes, nil, 3, "Limit is 3 bytes"},
		{Document{ID: "d", Text: "x"}, "words", tok, 5, `unit "words" is not known`},
		{Document{ID: "d", Text: "x\x80"}, UnitBytes, nil, 5, "not UTF-8 at byte 1"},
		{Document{ID: "d", Text: "x"}, UnitBytes, nil, -5, "Limit is -5"},
	} {
		_, err := ChunkFixed(test.doc, test.unit, test.tok, &TokenOptions{Limit: test.limit})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q", test.doc, err, test.want)
		}
	}
}
