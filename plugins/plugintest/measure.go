package plugintest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// Measurement is how long something took, over several runs.
type Measurement struct {
	Name    string        `json:"name"`
	Runs    int           `json:"runs"`
	Median  time.Duration `json:"median_ns"`
	Slowest time.Duration `json:"slowest_ns"`
}

// Measure times a plugin: its start, an empty call, and what its kinds do: 100
// candidates of a provider, a rerank of 100 texts of 1 KB, 10 turns of 50
// candidates of a decoder, 10×10 distances, 16 texts of 1 KB to embed. runs is
// the number of calls, 0 for 200; starts are a tenth of that.
func Measure(ctx context.Context, target Target, runs int, opts *Options) ([]Measurement, error) {
	if target.open == nil {
		return nil, fmt.Errorf("%s is called directly: there is nothing to measure", target.Name)
	}
	if runs <= 0 {
		runs = 200
	}
	s := &suite{Target: target, ctx: ctx}
	if opts != nil {
		s.Options = *opts
	}
	var out []Measurement
	measure := func(name string, runs int, f func() error) error {
		m, err := measured(ctx, name, runs, f)
		out = append(out, m)
		return err
	}
	err := measure("start and end", max(1, runs/10), func() error {
		host, err := target.open(ctx)
		if err != nil {
			return err
		}
		return host.Close()
	})
	if err != nil {
		return nil, err
	}
	host, err := target.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = host.Close() }() // nothing to lose
	if err := measure("empty call", runs, func() error { return host.Health(ctx) }); err != nil {
		return nil, err
	}
	work, err := s.work(host)
	if err != nil {
		return nil, err
	}
	for _, w := range work {
		if err := measure(w.name, runs, w.run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type work struct {
	name string
	run  func() error
}

// work lists what the kinds of a plugin do.
func (s *suite) work(host *plugins.Host) ([]work, error) {
	var out []work
	info, ctx := host.Info(), s.ctx
	if info.Serves(plugins.KindProvider) {
		p, err := host.Provider()
		if err != nil {
			return nil, err
		}
		q := s.queries()[0]
		out = append(out, work{"100 candidates", func() error {
			_, err := p.Candidates(ctx, q, 100)
			return err
		}})
	}
	if info.Serves(plugins.KindReranker) {
		r, err := host.Reranker()
		if err != nil {
			return nil, err
		}
		c := Kilobytes(100)
		out = append(out, work{"rerank 100 texts of 1 KB", func() error {
			_, err := r.Rerank(ctx, mapmatched.Query{Text: "toll on the bridge road"}, c)
			return err
		}})
	}
	if info.Serves(plugins.KindGraph) {
		g, err := host.Graph(ctx)
		if err != nil {
			return nil, err
		}
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
		out = append(out, work{"10×10 distances", func() error { return g.Distances(ctx, ids, ids, make([]float64, 100)) }})
	}
	if info.Serves(plugins.KindEmbedder) {
		e, err := host.Embedder()
		if err != nil {
			return nil, err
		}
		texts := make([]string, 16)
		for i, c := range Kilobytes(len(texts)) {
			texts[i] = c.Text
		}
		out = append(out, work{"embed 16 texts of 1 KB", func() error {
			_, err := e.Embed(ctx, texts)
			return err
		}})
	}
	if info.Serves(plugins.KindDecoder) {
		d, err := host.Decoder()
		if err != nil {
			return nil, err
		}
		t := randomTrellis(2, 10, 50)
		out = append(out, work{"decode 10 turns of 50 candidates", func() error {
			_, err := d.Decode(ctx, t)
			return err
		}})
	}
	return out, nil
}

// Kilobytes returns n candidates with texts of 1,000 bytes, the same ones in
// every call.
func Kilobytes(n int) []mapmatched.Candidate {
	c := rerankCandidates(n)
	for i := range c {
		for len(c[i].Text) < 1000 {
			c[i].Text += c[i].Text
		}
		c[i].Text = c[i].Text[:1000]
	}
	return c
}

// measured times f.
func measured(ctx context.Context, name string, runs int, f func() error) (Measurement, error) {
	times := make([]time.Duration, 0, runs)
	for range runs {
		if err := ctx.Err(); err != nil {
			return Measurement{}, err
		}
		begin := time.Now()
		if err := f(); err != nil {
			return Measurement{}, fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	return Measurement{Name: name, Runs: runs, Median: times[runs/2], Slowest: times[runs-1]}, nil
}
