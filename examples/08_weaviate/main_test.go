package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
)

func TestRun(t *testing.T) { testRun(t) }

// The parameters of MMPLUG_WEAVIATE_URL count wherever the example connects.
func TestRunWithAKey(t *testing.T) {
	t.Setenv(weaviatetest.EnvURL, "")
	s := weaviatetest.StartOwned(t, weaviatetest.Options{APIKeys: []string{"sesame"}})
	t.Setenv("MMPLUG_EXAMPLE_KEY", "sesame")
	t.Setenv(weaviatetest.EnvURL, s.URL("", "api_key_env=MMPLUG_EXAMPLE_KEY"))
	testRun(t)
}

func testRun(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(out.String(), "SKIP") {
		t.Skip(out.String())
	}
	const want = `4 chunks in the class
How long is a token valid?
  first hit: tokens/lifetime
  decoded:   tokens/lifetime
How do I renew it?
  first hit: invites/renew
  decoded:   tokens/renew
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
