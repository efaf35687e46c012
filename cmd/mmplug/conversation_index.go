package main

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// searched is the corpus that a conversation is about.
type searched interface {
	// name is what messages call it.
	name() string
	// parts are what a conversation on it is made of, its arms among them. It
	// refuses a policy or a model that it was not made under.
	parts(ctx context.Context, u *usedPolicy, model *embedding) (policy.Parts, error)
	// chunks gives texts by ID, nil when it cannot.
	chunks() mapmatched.ChunkFetcher
	close()
}

// indexDir is an index directory.
type indexDir struct {
	dir   string
	index *embedded.Index
	arms  []policy.FusedArm // once parts is called
}

// name implements searched.
func (d *indexDir) name() string { return d.dir }

// chunks implements searched.
func (d *indexDir) chunks() mapmatched.ChunkFetcher { return d.index }

// close implements searched.
func (d *indexDir) close() {
	for _, arm := range d.arms {
		closeAll(arm.Provider)
	}
	closeAll(d.index)
}

// parts implements searched.
func (d *indexDir) parts(ctx context.Context, u *usedPolicy, model *embedding) (policy.Parts, error) {
	if err := u.Fits(u.identity(d.index)); err != nil {
		return policy.Parts{}, fmt.Errorf("%s: %w", d.dir, err)
	}
	parts, err := u.retrieverParts(ctx, d.index)
	if err != nil {
		return parts, err
	}
	d.arms, err = u.arms(ctx, d.dir, d.index, model)
	parts.Arms = d.arms
	return parts, err
}
