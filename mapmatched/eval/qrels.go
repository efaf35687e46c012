package eval

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// judgements are the golds of turns by query ID.
type judgements struct {
	corpus *Corpus
	gold   map[string][]Gold
	seen   map[[2]string]bool
}

func newJudgements(corpus *Corpus) *judgements {
	return &judgements{corpus, map[string][]Gold{}, map[[2]string]bool{}}
}

// add adds a judgement. Grades below 1 say that a chunk is no gold.
func (j *judgements) add(query, chunk, grade string) error {
	n, err := strconv.Atoi(grade)
	switch {
	case err != nil:
		return fmt.Errorf("the grade is %q: it is a whole number", grade)
	case j.seen[[2]string{query, chunk}]:
		return fmt.Errorf("query %q, passage %q: judged twice", query, chunk)
	}
	j.seen[[2]string{query, chunk}] = true
	if n < 1 {
		return nil
	}
	if j.corpus.Find(chunk) == nil {
		return fmt.Errorf("query %q: passage %q is not in the corpus", query, chunk)
	}
	j.gold[query] = append(j.gold[query], Gold{ChunkID: chunk, Grade: n})
	return nil
}

// unknown reports a judged query that no conversation has.
func (j *judgements) unknown(known map[string]bool) error {
	least := ""
	for query := range j.gold {
		if !known[query] && (least == "" || query < least) {
			least = query
		}
	}
	if least != "" {
		return fmt.Errorf("query %q is judged, and no conversation has it", least)
	}
	return nil
}

// trecQrels reads "query 0 passage grade" lines.
func trecQrels(j *judgements) lineReader {
	return func(line []byte) error {
		if line == nil {
			return nil
		}
		fields := strings.Fields(string(line))
		if len(fields) != 4 {
			return fmt.Errorf("%d fields, wanted 4: query, 0, passage, grade", len(fields))
		}
		return j.add(fields[0], fields[2], fields[3])
	}
}

// beirQrels reads "query-id<TAB>corpus-id<TAB>score" lines after that header.
func beirQrels(j *judgements) lineReader {
	header := true
	return func(line []byte) error {
		if line == nil {
			return nil
		}
		fields := strings.Split(string(line), "\t")
		if header {
			header = false
			if len(fields) == 3 && fields[2] == "score" {
				return nil
			}
		}
		if len(fields) != 3 {
			return fmt.Errorf("%d fields, wanted 3 with a tab between: query, passage, score", len(fields))
		}
		return j.add(fields[0], fields[1], fields[2])
	}
}

// passage is a line of a corpus of passages, under the keys that such files use.
type passage struct {
	ID       string `json:"id"`
	BEIRID   string `json:"_id"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Contents string `json:"contents"`
	Document string `json:"document_id"`
}

// passagePlaces are the forms of passage IDs that tell their document:
// DOCUMENT-START-END with byte offsets, and DOCUMENT-NUMBER.
var passagePlaces = []*regexp.Regexp{regexp.MustCompile(`^(.+)-(\d+)-\d+$`), regexp.MustCompile(`^(.+)-(\d+)$`)}

// passages reads a corpus of passages, JSON lines or "id<TAB>text". The document
// of a passage is its document_id, or what its ID says (see passagePlaces), or
// else itself. Passages of a document are in the order of the numbers in their
// IDs, or of the file where these have none.
func passages(out **Corpus) lineReader {
	type placed struct {
		chunk Chunk
		at    int
	}
	var list []placed
	seen := map[string]bool{}
	return func(line []byte) error {
		if line == nil {
			b := newCorpusBuilder()
			byDocument := map[string][]int{}
			for i := range list {
				document := list[i].chunk.Document
				byDocument[document] = append(byDocument[document], i)
			}
			for _, members := range byDocument {
				numberPassages(members, func(i int) int { return list[i].at }, func(i, ordinal int) { list[i].chunk.Ordinal = ordinal })
			}
			for i := range list {
				if err := b.add(list[i].chunk); err != nil {
					return err
				}
			}
			var err error
			*out, err = b.corpus()
			return err
		}
		var p passage
		if line[0] == '{' {
			if err := decodeLine(line, &p); err != nil {
				return err
			}
		} else {
			id, text, tab := bytes.Cut(line, []byte("\t"))
			if !tab {
				return errors.New("it is neither JSON nor id, tab, text")
			}
			p.ID, p.Text = string(id), string(text)
		}
		id, text := firstOf(p.ID, p.BEIRID), firstOf(p.Text, p.Contents)
		switch {
		case id == "":
			return errors.New("a passage has no id")
		case seen[id]:
			return fmt.Errorf("passage %q occurs twice", id)
		case strings.TrimSpace(text) == "":
			return fmt.Errorf("passage %q has no text", id)
		}
		seen[id] = true
		document, at := p.Document, 0
		for _, form := range passagePlaces {
			if m := form.FindStringSubmatch(id); m != nil {
				document = firstOf(document, m[1])
				at, _ = strconv.Atoi(m[2]) // 0 for a number past all offsets
				break
			}
		}
		list = append(list, placed{Chunk{Chunk: mapmatched.Chunk{ID: id, Document: firstOf(document, id), Title: p.Title, Text: text}}, at})
		return nil
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// rewrittenQueries reads "id<TAB>query" lines.
func rewrittenQueries(out map[string]string) lineReader {
	return func(line []byte) error {
		if line == nil {
			return nil
		}
		id, text, tab := strings.Cut(string(line), "\t")
		if !tab || strings.TrimSpace(text) == "" {
			return errors.New("wanted a query ID, a tab and the rewritten query")
		}
		out[id] = strings.TrimSpace(text)
		return nil
	}
}

// readAll reads files in turn and remembers what they were.
func (d *Data) readAll(ctx context.Context, files ...func() (string, lineReader)) error {
	for _, next := range files {
		path, line := next()
		if path == "" {
			continue
		}
		f, err := readLines(ctx, path, line)
		if err != nil {
			return err
		}
		d.Files = append(d.Files, f)
	}
	return nil
}

// numberPassages gives the passages of a document their ordinals.
func numberPassages(members []int, at func(i int) int, set func(i, ordinal int)) {
	slices.SortStableFunc(members, func(x, y int) int { return cmp.Compare(at(x), at(y)) })
	for ordinal, i := range members {
		set(i, ordinal)
	}
}
