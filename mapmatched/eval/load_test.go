package eval

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a file for the test.
func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	tinyCorpus = `{"id":"a#0","doc":"a","domain":"x","title":"Apples","section":"","ordinal":0,"text":"Apples are red."}
{"id":"a#1","doc":"a","domain":"x","title":"Apples","section":"Price","ordinal":1,"text":"They cost two coins.","links":["b"]}

{"id":"b#0","doc":"b","domain":"y","title":"Pears","section":"","ordinal":0,"text":"They cost two coins."}
`
	tinyConversations = `{"conversation_id":"c1","domain":"x","doc_scope":"a","split":"dev","extra":[1],"turns":[` +
		`{"turn":1,"query":"apples?","answer":"Red.","gold":["a#0"],"standalone":true},` +
		`{"turn":3,"query":"and the cost?","gold":["a#1"],"gold_equivalent":["b#0","a#1"],"standalone":false,"topic_switch":true,"seam":true,"seam_kind":"return","rewrite":"cost of apples"},` +
		`{"turn":4,"query":"thanks"}]}
`
)

func TestLoadShared(t *testing.T) {
	d, err := Load(t.Context(), file(t, "corpus.jsonl", tinyCorpus), file(t, "conversations.jsonl", tinyConversations))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Corpus.Chunks) != 3 || d.Corpus.Documents() != 2 || len(d.Files) != 2 || d.Files[0].Bytes != int64(len(tinyCorpus)) {
		t.Fatalf("%d chunks of %d documents, files %+v", len(d.Corpus.Chunks), d.Corpus.Documents(), d.Files)
	}
	if all, scored := d.Turns(); all != 3 || scored != 2 || !d.HasRewrites() {
		t.Errorf("%d turns, %d scored, rewrites %v", all, scored, d.HasRewrites())
	}
	turn := d.Conversations[0].Turns[1]
	want := Gold{"a#1", 1, []string{"b#0"}} // the gold itself is no equivalent of its own
	if fmt.Sprint(turn.Gold) != fmt.Sprint([]Gold{want}) || turn.SeamKind != "return" || !turn.TopicSwitch || *turn.Standalone || turn.Rewrite != "cost of apples" {
		t.Errorf("turn %+v", turn)
	}
	if c := d.Corpus.Find("a#1"); c.Links[0] != "b" || c.Section != "Price" || d.Corpus.Find("zz") != nil {
		t.Errorf("chunk %+v", c)
	}
}

func TestLoadSharedRefuses(t *testing.T) {
	chunk := func(fields string) string { return `{"id":"a","doc":"d","ordinal":0,"text":"t"` + fields + "}\n" }
	conversation := func(turns string) string { return `{"conversation_id":"c","turns":[` + turns + "]}\n" }
	turn := `{"turn":1,"query":"q","gold":["a"]}`
	for _, c := range []struct{ corpus, conversations, want string }{
		{"", conversation(turn), "corpus.jsonl: there are no chunks"},
		{"x\n", "", "corpus.jsonl:1: it is no JSON object"},
		{chunk("") + "\n\n{\"id\":\n", "", "corpus.jsonl:4: unexpected end of JSON input"},
		{chunk(`,"title":5`), "", "corpus.jsonl:1: title is a JSON number, wanted a string"},
		{chunk(`,"links":"b"`), "", "corpus.jsonl:1: links is a JSON string, wanted an array"},
		{chunk("") + chunk(`,"ordinal":1`), "", `corpus.jsonl:2: chunk ID "a" occurs twice`},
		{chunk("") + chunk(`,"id":"b"`), "", `corpus.jsonl:2: chunk "b" has ordinal 0 of document "d", which another chunk has`},
		{`{"id":"a","doc":"d","text":"t"}`, "", `corpus.jsonl:1: chunk "a" has no ordinal`},
		{chunk(`,"text":""`), "", `corpus.jsonl:1: chunk "a" has no text`},
		{chunk(`,"doc":""`), "", `corpus.jsonl:1: chunk "a" has no document`},
		{chunk(`,"ordinal":-1`), "", `corpus.jsonl:1: chunk "a" has ordinal -1: it counts from 0`},
		{chunk(`,"id":""`), "", "corpus.jsonl:1: empty chunk ID"},
		{chunk(`,"text":"` + "\xff" + `"`), "", "corpus.jsonl:1: it is not UTF-8"},
		{chunk(""), "", "conversations.jsonl: there are no conversations"},
		{chunk(""), "\n" + conversation(turn) + conversation(turn), `conversations.jsonl:3: conversation "c" occurs twice`},
		{chunk(""), conversation(""), `conversations.jsonl:1: conversation "c" has no turns`},
		{chunk(""), `{"turns":[` + turn + `]}`, "conversations.jsonl:1: a conversation has no ID"},
		{chunk(""), conversation(`{"query":"q"}`), `conversations.jsonl:1: conversation "c", turn 1: it has no number`},
		{chunk(""), conversation(turn + "," + turn), `turn 2: its number is 1: turns are numbered upwards from 1`},
		{chunk(""), conversation(`{"turn":1,"query":" "}`), `turn 1: it has no query`},
		{chunk(""), conversation(`{"turn":1,"query":"q","gold":["z"]}`), `turn 1: gold "z" is no chunk of the corpus`},
		{chunk(""), conversation(`{"turn":1,"query":"q","gold":["a","a"]}`), `turn 1: gold "a" is given twice`},
		{chunk(""), conversation(`{"turn":1,"query":"q","gold_equivalent":["a"]}`), `turn 1: gold_equivalent without gold`},
		{chunk(""), conversation(`{"turn":1,"query":"q","gold":["a"],"gold_equivalent":["z"]}`), `gold_equivalent "z" is no chunk of the corpus`},
		{chunk(""), conversation(`{"turn":1,"query":"q","seam_kind":"jump"}`), `seam_kind is "jump": it is switch or return`},
		{chunk(""), conversation(`{"turn":1,"query":"q","standalone":"no"}`), `standalone is a JSON string, wanted true or false`},
	} {
		_, err := Load(t.Context(), file(t, "corpus.jsonl", c.corpus), file(t, "conversations.jsonl", c.conversations))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q and %q: error %v, wanted %q", c.corpus, c.conversations, err, c.want)
		}
	}
	if _, err := Load(t.Context(), "nowhere.jsonl", "nowhere.jsonl"); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, file(t, "corpus.jsonl", tinyCorpus), file(t, "conversations.jsonl", tinyConversations)); err == nil {
		t.Error("a cancelled context reads all the same")
	}
}

const tinyTopi = `[
 {"Conversation_no":1,"Turn_no":1,"Question":"who wrote it","Answer":"Ann","Topic":"Book","Topic_section":"Intro","Rationale":"Ann wrote",
  "Gold_passage":{"id":"wiki:20","title":"Book [SEP] Intro","text":"Ann wrote the book in May."},
  "Additional_answers":[{"Answer":"Ann B","Topic":"Book","Topic_section":"Intro","Rationale":"Ann wrote the book"},{"Answer":"A","Topic":"Author","Topic_section":"Life","Rationale":"She was Ann."}]},
 {"Conversation_no":1,"Turn_no":2,"Question":"when","Answer":"UNANSWERABLE","Topic":"Author","Topic_section":"","Rationale":"UNANSWERABLE"},
 {"Conversation_no":2,"Turn_no":1,"Question":"how long is it","Answer":"300","Topic":"Book",
  "Gold_passage":{"id":"wiki:3","title":"Book [SEP] Size","text":"It has 300 pages."}}
]`

func TestLoadTopiOCQA(t *testing.T) {
	d, err := LoadTopiOCQA(t.Context(), file(t, "dev.json", tinyTopi))
	if err != nil {
		t.Fatal(err)
	}
	// Passages of a topic are in the order of their numbers, not of the conversation.
	var got []string
	for _, c := range d.Corpus.Chunks {
		got = append(got, fmt.Sprintf("%s %s %s %d", strings.SplitN(c.ID, "#", 2)[0], c.Title, c.Section, c.Ordinal))
	}
	if want := "[Author Author Life 0 wiki:3 Book Size 0 wiki:20 Book Intro 1]"; fmt.Sprint(got) != want {
		t.Errorf("chunks %v, wanted %v", got, want)
	}
	turns := d.Conversations[0].Turns
	if len(turns[0].Gold) != 2 || turns[0].Gold[0].ChunkID != "wiki:20" { // the first additional rationale is part of the gold passage
		t.Errorf("gold %+v", turns[0].Gold)
	}
	if len(turns[1].Gold) != 0 || !turns[1].TopicSwitch || turns[0].TopicSwitch {
		t.Errorf("turns %+v", turns)
	}
	lines := strings.NewReplacer("\n", "", " {\"Conversation_no\"", "\n{\"Conversation_no\"").Replace(strings.Trim(tinyTopi, "[]"))
	other, err := LoadTopiOCQA(t.Context(), file(t, "dev.jsonl", strings.ReplaceAll(lines, "},\n", "}\n")))
	if err != nil || other.Corpus.Digest() != d.Corpus.Digest() {
		t.Errorf("as JSON lines: %v", err)
	}
}

func TestLoadTopiOCQARefuses(t *testing.T) {
	turn := `{"Conversation_no":1,"Turn_no":1,"Question":"q","Topic":"t","Rationale":"r"}`
	for content, want := range map[string]string{
		"":                                "dev.json: it is empty",
		"[\n" + turn + ",\n" + turn + "]": "dev.json:3: conversation 1: turn 1 comes after turn 1",
		"[" + turn + ",{\"Turn_no\":2}]":  "dev.json:1: a turn has no Conversation_no or no Turn_no",
		"[" + turn:                        "dev.json:1: the array has no end",
		"[" + turn + "] 1":                "dev.json:1: something follows the array",
		"[\n\n" + turn + ",\n{\"Conversation_no\":2,\"Turn_no\":1}]": "dev.json:4: conversation 2, turn 1: it has no Question",
		"[\n{\"Conversation_no\":\"x\"}]":                            "dev.json:2: Conversation_no is a JSON string, wanted a whole number",
		`[{"Conversation_no":1,"Turn_no":1,"Question":"q"}]`:         "dev.json: there are no chunks",
		"[" + turn + "," + strings.Replace(turn, ":1", ":2", 1) + "," + strings.Replace(turn, `"Turn_no":1`, `"Turn_no":2`, 1) + "]": "dev.json:1: conversation 1 occurs twice",
		`{"Conversation_no":1,`: "dev.json:1: the file ends in the middle",
	} {
		_, err := LoadTopiOCQA(t.Context(), file(t, "dev.json", content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, wanted %q", content, err, want)
		}
	}
}

const tinyTopics = `[{"number":31,"title":"x","turn":[
 {"number":1,"raw_utterance":"What is throat cancer?","manual_rewritten_utterance":"What is throat cancer?"},
 {"number":2,"raw_utterance":"Is it treatable?","automatic_rewritten_utterance":"Is cancer treatable?","passage":"Yes."}]}]`

func castFiles(t testing.TB, passages, qrels, rewrites string) CAsTFiles {
	f := CAsTFiles{Topics: file(t, "topics.json", tinyTopics), Passages: file(t, "passages.jsonl", passages), Qrels: file(t, "qrels.txt", qrels)}
	if rewrites != "" {
		f.Rewrites = file(t, "rewrites.tsv", rewrites)
	}
	return f
}

func TestLoadCAsT(t *testing.T) {
	const list = `{"id":"KILT_7-10","contents":"ten"}
{"id":"KILT_7-2","text":"two","title":"T"}
` + "MARCO_5\tfive of it\n"
	d, err := LoadCAsT(t.Context(), castFiles(t, list, "31_1 0 KILT_7-2 3\n31_1 0 KILT_7-10 0\n31_2 0 MARCO_5 1\n", "31_2\tIs throat cancer treatable?\n"))
	if err != nil {
		t.Fatal(err)
	}
	turns := d.Conversations[0].Turns
	if turns[0].Gold[0].Grade != 3 || len(turns[0].Gold) != 1 || turns[1].Rewrite != "Is throat cancer treatable?" || turns[1].Answer != "Yes." {
		t.Errorf("turns %+v", turns)
	}
	if c := d.Corpus.Find("KILT_7-10"); c.Document != "KILT_7" || c.Ordinal != 1 || d.Corpus.Find("KILT_7-2").Ordinal != 0 || d.Corpus.Find("MARCO_5").Document != "MARCO_5" {
		t.Errorf("chunk %+v", c)
	}
	d, err = LoadCAsT(t.Context(), castFiles(t, list, "31_2 0 MARCO_5 1\n", ""))
	if err != nil || d.Conversations[0].Turns[1].Rewrite != "Is cancer treatable?" {
		t.Errorf("without a file of rewrites: %v", err)
	}
	for _, c := range []struct{ passages, qrels, rewrites, want string }{
		{list, "31_1 0 nowhere 1\n", "", `qrels.txt:1: query "31_1": passage "nowhere" is not in the corpus`},
		{list, "31_1 0 MARCO_5\n", "", "qrels.txt:1: 3 fields, wanted 4"},
		{list, "31_1 0 MARCO_5 x\n", "", `qrels.txt:1: the grade is "x": it is a whole number`},
		{list, "31_1 0 MARCO_5 1\n31_1 0 MARCO_5 2\n", "", `qrels.txt:2: query "31_1", passage "MARCO_5": judged twice`},
		{list, "99_1 0 MARCO_5 1\n", "", `qrels.txt: query "99_1" is judged, and no conversation has it`},
		{list, "31_1 0 MARCO_5 1\n", "x\n", "rewrites.tsv:1: wanted a query ID, a tab and the rewritten query"},
		{list + list, "", "", `passages.jsonl:4: passage "KILT_7-10" occurs twice`},
		{`{"id":"x"}`, "", "", `passages.jsonl:1: passage "x" has no text`},
		{"words only", "", "", "passages.jsonl:1: it is neither JSON nor id, tab, text"},
	} {
		if _, err := LoadCAsT(t.Context(), castFiles(t, c.passages, c.qrels, c.rewrites)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, wanted %q", c.passages+c.qrels+c.rewrites, err, c.want)
		}
	}
}

func mtragFiles(t testing.TB, queries, qrels, rewrites string) MTRAGFiles {
	f := MTRAGFiles{Queries: file(t, "queries.jsonl", queries), Qrels: file(t, "dev.tsv", qrels),
		Corpus: file(t, "corpus.jsonl", `{"_id":"d1-500-900","title":"One","text":"second part"}
{"_id":"d1-0-500","title":"One","text":"first part"}
{"_id":"p","text":"other"}
`)}
	if rewrites != "" {
		f.Rewrites = file(t, "rewrites.jsonl", rewrites)
	}
	return f
}

func TestLoadMTRAG(t *testing.T) {
	const queries = `{"_id":"k<::>3","text":"|user|: one\n|user|: two\n|user|: three"}
{"_id":"k<::>2","text":"|user|: one\n|user|: two"}
{"_id":"other","text":"plain query"}
`
	d, err := LoadMTRAG(t.Context(), mtragFiles(t, queries, "query-id\tcorpus-id\tscore\nk<::>3\td1-0-500\t1\nother\tp\t2\n", `{"_id":"k<::>3","text":"|user|: three of it"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, turn := range d.Conversations[0].Turns {
		got = append(got, fmt.Sprintf("%s/%s/%d", turn.Query, turn.Rewrite, len(turn.Gold)))
	}
	if want := "[one//0 two//0 three/three of it/1]"; fmt.Sprint(got) != want {
		t.Errorf("turns %v, wanted %v", got, want)
	}
	if len(d.Conversations) != 2 || d.Conversations[1].Turns[0].Gold[0].Grade != 2 {
		t.Errorf("conversations %+v", d.Conversations)
	}
	if c := d.Corpus.Find("d1-500-900"); c.Document != "d1" || c.Ordinal != 1 {
		t.Errorf("chunk %+v", c)
	}
	for _, c := range []struct{ queries, qrels, want string }{
		{"", "", "queries.jsonl: there are no queries"},
		{`{"_id":"k<::>x","text":"q"}`, "", `queries.jsonl:1: query ID "k<::>x": wanted a conversation`},
		{queries + `{"_id":"other","text":"q"}`, "", `queries.jsonl:4: query ID "other" is empty or occurs twice`},
		{`{"_id":"a","text":"|user|: "}`, "", `queries.jsonl:1: query "a" has no text`},
		{queries, "other\tp\n", "dev.tsv:1: 2 fields, wanted 3"},
		{queries, "nobody\tp\t1\n", `dev.tsv: query "nobody" is judged, and no conversation has it`},
		{queries + `{"_id":"k<::>02","text":"q"}`, "", `queries.jsonl: conversation "k" has two queries for turn 2`},
	} {
		if _, err := LoadMTRAG(t.Context(), mtragFiles(t, c.queries, c.qrels, "")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %q: error %v, wanted %q", c.queries, c.qrels, err, c.want)
		}
	}
}

// sound reports what is wrong with data that a loader accepted.
func sound(c *Corpus, conversations []Conversation) error {
	d := &Data{Corpus: c, Conversations: conversations}
	if len(c.Chunks) == 0 || len(conversations) == 0 {
		return fmt.Errorf("%d chunks, %d conversations", len(c.Chunks), len(conversations))
	}
	if _, err := NewCorpus(c.Chunks); err != nil {
		return err
	}
	for i := range conversations {
		for t := range conversations[i].Turns {
			for _, g := range conversations[i].Turns[t].Gold {
				if c.Find(g.ChunkID) == nil || g.Grade < 1 {
					return fmt.Errorf("gold %+v", g)
				}
			}
		}
	}
	_, err := NewWorld(d, nil)
	return err
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("an error of several lines: %q", err)
	}
}

func FuzzShared(f *testing.F) {
	f.Add(tinyCorpus, tinyConversations)
	f.Add("{}", "{}")
	f.Fuzz(func(t *testing.T, corpus, conversations string) {
		var c *Corpus
		if err := scan(strings.NewReader(corpus), "corpus", sharedCorpus(&c)); err != nil {
			oneLine(t, err)
			return
		}
		var list []Conversation
		if err := scan(strings.NewReader(conversations), "conversations", sharedConversations(c, &list)); err != nil {
			oneLine(t, err)
			return
		}
		if err := sound(c, list); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzTopiOCQA(f *testing.F) {
	f.Add([]byte(tinyTopi))
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, list, err := readTopiOCQA(bytes.NewReader(data), "dev.json")
		if err != nil {
			oneLine(t, err)
			return
		}
		if err := sound(c, list); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzPassagesAndJudgements(f *testing.F) {
	f.Add("{\"_id\":\"d-1-2\",\"text\":\"x\"}\nb\tc", "q 0 b 1", "q\tb\t1", `{"_id":"q<::>1","text":"|user|: x"}`, tinyTopics)
	f.Fuzz(func(t *testing.T, corpus, trec, beir, queries, topics string) {
		var c *Corpus
		if err := scan(strings.NewReader(corpus), "corpus", passages(&c)); err != nil {
			oneLine(t, err)
			return
		}
		j := newJudgements(c)
		for _, err := range []error{scan(strings.NewReader(trec), "qrels", trecQrels(j)), scan(strings.NewReader(beir), "qrels", beirQrels(j))} {
			if err != nil {
				oneLine(t, err)
			}
		}
		var q mtragQueries
		if scan(strings.NewReader(queries), "queries", q.read) == nil {
			if list, err := q.conversations(c, j, mtragQueries{}); err == nil {
				if err := sound(c, list); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := readObjects(strings.NewReader(topics), "topics", func(topic castTopic) error {
			_, err := topic.conversation(j, nil, map[string]bool{})
			return err
		})
		if err != nil {
			oneLine(t, err)
		}
	})
}
