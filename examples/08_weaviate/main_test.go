package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
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
