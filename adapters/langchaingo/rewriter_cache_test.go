package langchaingo

import (
	"encoding/json"
	"testing"
)

// FuzzDecodeRewrite: no bytes panic, and what is accepted is a reply to the
// question.
func FuzzDecodeRewrite(f *testing.F) {
	want := rewriteEntry{Schema: rewriteSchema, Model: "m", Prompt: RewritePrompt, History: []string{"a"}, Question: "b", Rewrite: "c"}
	good, err := json.Marshal(want)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":"mmplug.rewrite/1","rewrite":"x"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reply, err := decodeRewrite(raw, want)
		if (reply == "") != (err != nil) {
			t.Fatalf("reply %q, error %v", reply, err)
		}
		if err != nil {
			return
		}
		var e rewriteEntry
		if err := json.Unmarshal(raw, &e); err != nil || e.key() != want.key() || e.Rewrite != reply {
			t.Fatalf("accepted %s (%v)", raw, err)
		}
	})
}
