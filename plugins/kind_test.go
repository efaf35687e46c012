package plugins

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestInfoCheck: what a plugin says of itself is refused in one short line.
func TestInfoCheck(t *testing.T) {
	many := make([]Kind, 100_000)
	for i := range many {
		many[i] = Kind(fmt.Sprint("k", i))
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		what   string
		change func(*Info)
		want   string
	}{
		{"a kind of two lines", func(i *Info) { i.Kinds = []Kind{"foo\nbar"} }, `the kind "foo\nbar" is not one of provider`},
		{"a kind with colour", func(i *Info) { i.Kinds = []Kind{"reranker", "\x1b[31mred"} }, `the kind "\x1b[31mred"`},
		{"many kinds", func(i *Info) { i.Kinds = many }, "it names 100000 kinds"},
		{"a long kind", func(i *Info) { i.Kinds = []Kind{Kind(long)} }, "the kind"},
		{"a capability of two lines", func(i *Info) { i.Capabilities = []Capability{"a\nb"} }, `the capability "a\nb"`},
		{"many capabilities", func(i *Info) { i.Capabilities = make([]Capability, 1000) }, "1000 capabilities"},
		{"a long name", func(i *Info) { i.Name = long }, "the name"},
		{"a long version", func(i *Info) { i.Version = long }, "the version"},
		{"a long description", func(i *Info) { i.Description = long }, "the description has 1048576 bytes"},
		{"a description of two long lines", func(i *Info) { i.Description = long + "\n" }, "is not one line"},
		{"a description of two lines", func(i *Info) { i.Description = "a\u2028b" }, "is not one line"},
		{"a long schema", func(i *Info) { i.Schema = json.RawMessage(strings.Repeat(" ", maxSchema) + "{}") }, "the schema of the configuration has"},
	} {
		info := Info{Name: "x", Version: "1.0", Kinds: []Kind{KindReranker}}
		c.change(&info)
		err := info.check()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsFunc(err.Error(), isBreak) || len(err.Error()) > 500 {
			t.Errorf("%s: error %.600v, want one short line with %q", c.what, err, c.want)
		}
	}
	// A later version of the protocol may know more.
	later := Info{Name: "x", Version: "1.0", Kinds: []Kind{KindReranker, "oracle"}, Capabilities: []Capability{"score_chunks", "see_far_2"}}
	if err := later.check(); err != nil {
		t.Error(err)
	}
}
