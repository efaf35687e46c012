package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/policy"
)

// reranked is what a program gets to know of a reranker's look at a turn.
type reranked struct {
	policy.RerankRecord
	Order []string       `json:"order"`              // chunk IDs, best first, as the answer came
	Later *laterReranked `json:"deferred,omitempty"` // what became of it, in the mode deferred
}

// laterReranked is the result of a deferred reranker.
type laterReranked struct {
	policy.RerankRecord
	Order []string `json:"order"`
}

// checkReranker refuses a reranker that the policy never asks, and none where it
// asks one.
func (u *usedPolicy) checkReranker(url string) error {
	switch off := u.Rerank.Mode == policy.RerankOff; {
	case off && url != "":
		return usageError{fmt.Errorf("policy %s never asks a reranker: leave out --reranker, or set rerank.mode to %s or %s", u.Name, policy.RerankSync, policy.RerankDeferred)}
	case !off && url == "":
		return fmt.Errorf("policy %s: rerank.mode is %s, which needs a reranker: give its URL with --reranker (see \"mmplug adapters\")", u.Name, u.Rerank.Mode)
	}
	return nil
}

// openReranker opens the reranker at a URL; "" is none.
func openReranker(ctx context.Context, url string) (mapmatched.Reranker, error) {
	if url == "" {
		return nil, nil
	}
	return registry.OpenReranker(ctx, url)
}

// trusting returns a context in which only the plugins run that the policy
// lists, if it lists any.
func (u *usedPolicy) trusting(ctx context.Context) context.Context {
	pins := make(map[string]string, len(u.Plugins))
	for _, p := range u.Plugins {
		pins[p.Name] = p.SHA256
	}
	return plugins.WithPins(ctx, pins)
}

// rerankedOf gathers what became of the order of a turn, and waits for a
// deferred reranker, whose budget bounds it. It is nil without a reranker.
func rerankedOf(a *policy.Answer) *reranked {
	if a.Rerank == nil {
		return nil
	}
	r := &reranked{RerankRecord: *a.Rerank, Order: idsOf(a.Order)}
	if a.Later != nil {
		if result, ok := <-a.Later; ok {
			r.Later = &laterReranked{result.Record, idsOf(result.Order)}
		}
	}
	return r
}

func idsOf(order []mapmatched.Candidate) []string {
	ids := make([]string, len(order))
	for i := range order {
		ids[i] = order[i].ChunkID
	}
	return ids
}

// printReranked shows a person the first chunks in the order of the reranker.
// The answer is out already when it waits for a deferred one.
func (c *conversation) printReranked(a *policy.Answer, most int) error {
	r := rerankedOf(a)
	if r == nil {
		return nil
	}
	record, order := r.RerankRecord, r.Order
	if r.Later != nil {
		record, order = r.Later.RerankRecord, r.Later.Order
	}
	text := "reranked  " + strings.Join(order[:min(most, len(order))], ", ")
	if err := record.Err(); err != nil {
		if r.Later == nil {
			return nil // it was a warning already
		}
		text = err.Error()
	}
	_, err := io.WriteString(c.std.out, "    "+styleFor(c.std.out).dim(printable(oneLine(text)))+"\n")
	return err
}
