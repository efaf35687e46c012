package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mtragTurn separates the conversation from the turn in a query ID of MTRAG, and
// mtragUser begins a turn of the user in a query.
const (
	mtragTurn = "<::>"
	mtragUser = "|user|:"
)

// MTRAGFiles are the files of a retrieval task in the form of BEIR.
type MTRAGFiles struct {
	Corpus   string // JSON lines with _id, title and text
	Queries  string // JSON lines with _id and text
	Qrels    string // query-id, corpus-id and score with tabs between
	Rewrites string // queries of the same IDs that stand alone; "" for none
}

// LoadMTRAG reads a retrieval task of MTRAG, or of BEIR. A query ID
// CONVERSATION<::>TURN tells its place in a conversation; any other is a
// conversation of one turn. A query text may have all turns of the user, each
// after "|user|:": the last is the query, and the others are earlier turns that
// have no query of their own when their number says so.
func LoadMTRAG(ctx context.Context, files MTRAGFiles) (*Data, error) {
	d := &Data{Format: "mtrag", Name: nameOf(files.Queries)}
	var queries, rewrites mtragQueries
	err := d.readAll(ctx,
		func() (string, lineReader) { return files.Corpus, passages(&d.Corpus) },
		func() (string, lineReader) { return files.Queries, queries.read },
		func() (string, lineReader) { return files.Rewrites, rewrites.read })
	if err != nil {
		return nil, err
	}
	j := newJudgements(d.Corpus)
	err = d.readAll(ctx, func() (string, lineReader) { return files.Qrels, beirQrels(j) })
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, q := range queries.list {
		known[q.id] = true
	}
	if err := j.unknown(known); err != nil {
		return nil, fmt.Errorf("%s: %w", files.Qrels, err)
	}
	if d.Conversations, err = queries.conversations(d.Corpus, j, rewrites); err != nil {
		return nil, fmt.Errorf("%s: %w", files.Queries, err)
	}
	return d, nil
}

type mtragQuery struct {
	id, conversation string
	turn             int      // from 1
	texts            []string // turns of the user, the query last
}

type mtragQueries struct {
	list []mtragQuery
	byID map[string]int
}

// read reads the lines of a file of queries.
func (q *mtragQueries) read(line []byte) error {
	if line == nil {
		if len(q.list) == 0 {
			return errors.New("there are no queries")
		}
		return nil
	}
	var p struct {
		ID   string `json:"_id"`
		Text string `json:"text"`
	}
	if err := decodeLine(line, &p); err != nil {
		return err
	}
	if _, twice := q.byID[p.ID]; twice || p.ID == "" {
		return fmt.Errorf("query ID %q is empty or occurs twice", p.ID)
	}
	own := mtragQuery{id: p.ID, conversation: p.ID, turn: 1}
	if conversation, turn, found := strings.Cut(p.ID, mtragTurn); found {
		n, err := strconv.Atoi(turn)
		if err != nil || n < 1 || conversation == "" {
			return fmt.Errorf("query ID %q: wanted a conversation, %s and the number of a turn from 1", p.ID, mtragTurn)
		}
		own.conversation, own.turn = conversation, n
	}
	for part := range strings.SplitSeq(p.Text, mtragUser) {
		if part = strings.TrimSpace(part); part != "" {
			own.texts = append(own.texts, part)
		}
	}
	if len(own.texts) == 0 {
		return fmt.Errorf("query %q has no text", p.ID)
	}
	if q.byID == nil {
		q.byID = map[string]int{}
	}
	q.byID[p.ID] = len(q.list)
	q.list = append(q.list, own)
	return nil
}

// conversations puts the queries together, conversations in the order of their
// first query.
func (q *mtragQueries) conversations(corpus *Corpus, j *judgements, rewrites mtragQueries) ([]Conversation, error) {
	members := map[string][]mtragQuery{}
	var order []string
	for _, query := range q.list {
		if members[query.conversation] == nil {
			order = append(order, query.conversation)
		}
		members[query.conversation] = append(members[query.conversation], query)
	}
	b := conversationsBuilder{seen: map[string]bool{}}
	for _, id := range order {
		list := members[id]
		slices.SortStableFunc(list, func(x, y mtragQuery) int { return cmp.Compare(x.turn, y.turn) })
		c := Conversation{ID: id}
		done := 0 // turns that are there
		for i, query := range list {
			if i > 0 && list[i-1].turn == query.turn {
				return nil, fmt.Errorf("conversation %q has two queries for turn %d", id, query.turn)
			}
			if len(query.texts) == query.turn {
				for _, text := range query.texts[min(done, query.turn-1) : query.turn-1] {
					c.Turns = append(c.Turns, Turn{Query: text})
				}
			}
			done = query.turn
			turn := Turn{Query: query.texts[len(query.texts)-1], Gold: j.gold[query.id]}
			if at, found := rewrites.byID[query.id]; found {
				texts := rewrites.list[at].texts
				turn.Rewrite = texts[len(texts)-1]
			}
			c.Turns = append(c.Turns, turn)
		}
		if err := b.add(corpus, c); err != nil {
			return nil, err
		}
	}
	return b.conversations()
}
