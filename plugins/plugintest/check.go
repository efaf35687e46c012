package plugintest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/probe"
)

// Options tune the suite. The zero value is ready for use.
type Options struct {
	// Queries are asked of a provider without the capability "load"; without
	// any, a few common words are.
	Queries []mapmatched.Query
	// Provider and Graph are for stores that cannot keep a promise of the
	// suite of adaptertest; New and Stalled are set by this package.
	Provider adaptertest.ProviderHarness
	Graph    adaptertest.GraphHarness
	// Tolerance is how far a decoder's scores may be from the built-in ones;
	// 0 asks for the same bits.
	Tolerance float64
	// Patience is how long one check may take; 0 means 1 min.
	Patience time.Duration
}

// suite is a run of the checks.
type suite struct {
	Target
	Options
	ctx    context.Context
	info   plugins.Info
	report *Report
}

// Check runs the suite. Every check has a result, in a fixed order; when the
// plugin does not start there is only that one.
func Check(ctx context.Context, target Target, opts *Options) Report {
	report := Report{Target: target.Name}
	s := &suite{Target: target, ctx: ctx, report: &report}
	if opts != nil {
		s.Options = *opts
	}
	if s.Patience == 0 {
		s.Patience = time.Minute
	}
	services := target.direct.Services
	if target.open != nil {
		host, err := target.open(ctx)
		report.add("protocol", "starts", err)
		if err != nil {
			return report
		}
		s.info = host.Info()
		report.Info = s.info
		report.add("protocol", "ends when asked", host.Close())
		s.protocol()
	} else {
		var err error
		if target.direct.Configure != nil {
			services, err = target.direct.Configure(ctx, []byte("{}"))
		}
		report.add("protocol", "configures", err)
		if err != nil {
			return report
		}
		s.info = directInfo(target.direct, services)
		report.Info = s.info
	}
	for _, kind := range plugins.Kinds() {
		if !s.info.Serves(kind) {
			continue
		}
		switch kind {
		case plugins.KindProvider:
			s.provider(services)
		case plugins.KindReranker:
			run(s, kind, rerankerChecks, services.Reranker, (*plugins.Host).Reranker)
		case plugins.KindGraph:
			s.graph(services)
		case plugins.KindEmbedder:
			run(s, kind, embedderChecks, services.Embedder, (*plugins.Host).Embedder)
		case plugins.KindDecoder:
			run(s, kind, decoderChecks, services.Decoder, (*plugins.Host).Decoder)
		}
	}
	return report
}

// directInfo describes a plugin that is called directly.
func directInfo(p plugins.Plugin, services plugins.Services) plugins.Info {
	info := plugins.Info{Name: p.Name, Version: p.Version, Description: p.Description, Schema: p.Schema}
	for _, k := range []struct {
		kind    plugins.Kind
		present bool
	}{
		{plugins.KindProvider, services.Provider != nil}, {plugins.KindReranker, services.Reranker != nil}, {plugins.KindGraph, services.Graph != nil},
		{plugins.KindEmbedder, services.Embedder != nil}, {plugins.KindDecoder, services.Decoder != nil},
	} {
		if k.present {
			info.Kinds = append(info.Kinds, k.kind)
		}
	}
	if p.LoadCorpus != nil || p.LoadGraph != nil {
		info.Capabilities = append(info.Capabilities, plugins.CanLoad)
	}
	return info
}

// Test runs the suite as subtests.
func Test(t *testing.T, target Target, opts *Options) {
	t.Helper()
	for _, r := range Check(t.Context(), target, opts).Results {
		t.Run(r.Group+"/"+r.Check, func(t *testing.T) {
			switch r.Status {
			case mapmatched.StatusSkipped:
				t.Skip(r.Detail)
			case mapmatched.StatusFailed:
				t.Error(r.Detail)
			}
		})
	}
}

// check is one promise of a service.
type check[T any] struct {
	name string
	run  func(s *suite, service T) error
}

// run runs the checks of a kind on one running plugin, which has to be up
// without a restart after each.
func run[T any](s *suite, kind plugins.Kind, checks []check[T], direct T, take func(*plugins.Host) (T, error)) {
	service := direct
	var host *plugins.Host
	if s.open != nil {
		var err error
		if host, err = s.open(s.ctx); err == nil {
			defer func() { _ = host.Close() }() // closing is checked elsewhere
			service, err = take(host)
		}
		if err != nil {
			s.report.add(string(kind), "starts", err)
			return
		}
	}
	for _, c := range checks {
		err := s.within(func() error { return c.run(s, service) })
		var skipped skip
		if !errors.As(err, &skipped) {
			err = errors.Join(err, s.alive(host))
		}
		s.report.add(string(kind), c.name, err)
	}
}

// alive expects that the plugin runs and has not been started again.
func (s *suite) alive(host *plugins.Host) error {
	if host == nil {
		return nil
	}
	if err := host.Health(s.ctx); err != nil {
		return fmt.Errorf("health afterwards: %w", err)
	}
	if n := host.Starts(); n != 1 {
		return fmt.Errorf("the plugin ended and was started again %d times", n-1)
	}
	return nil
}

// within runs f and gives up on it after the patience of the suite.
func (s *suite) within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- recovered(f) }()
	timer := time.NewTimer(s.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("it went on for more than %v", s.Patience)
	}
}

func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f()
}

// parallel runs f(0) to f(n−1) at the same time and returns the error of the
// lowest number that failed.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = recovered(func() error { return f(i) }) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// adapterResults takes over the results of package adaptertest.
func (s *suite) adapterResults(kind plugins.Kind, results []adaptertest.Result) {
	for _, r := range results {
		err := r.Err
		if r.Skipped != "" {
			err = skip(r.Skipped)
		}
		s.report.add(string(kind), r.Check, err)
	}
}

// loaded opens the plugin and hands it something to hold.
func loaded[T any](s *suite, load func(*plugins.Host) error, take func(*plugins.Host) (T, error)) (T, error) {
	var none T
	host, err := s.open(s.ctx)
	if err != nil {
		return none, err
	}
	if err = load(host); err == nil {
		var service T
		if service, err = take(host); err == nil {
			return service, nil
		}
	}
	return none, errors.Join(err, host.Close())
}

func (s *suite) provider(services plugins.Services) {
	if !s.info.Can(plugins.CanLoad) || s.open == nil && s.direct.LoadCorpus == nil {
		run(s, plugins.KindProvider, providerChecks, services.Provider, (*plugins.Host).Provider)
		return
	}
	h := s.Provider
	h.New = func(c adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
		if s.open == nil {
			return s.direct.LoadCorpus(s.ctx, c.Chunks, c.Vectors)
		}
		return loaded(s, func(host *plugins.Host) error { return probe.LoadCorpus(s.ctx, host, c.Chunks, c.Vectors) }, (*plugins.Host).Provider)
	}
	s.adapterResults(plugins.KindProvider, adaptertest.CheckProvider(s.ctx, h))
}

func (s *suite) graph(services plugins.Services) {
	take := func(host *plugins.Host) (mapmatched.CorpusGraph, error) { return host.Graph(s.ctx) }
	if !s.info.Can(plugins.CanLoad) || s.open == nil && s.direct.LoadGraph == nil {
		run(s, plugins.KindGraph, graphChecks, services.Graph, take)
		return
	}
	h := s.Graph
	h.New = func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
		if s.open == nil {
			return s.direct.LoadGraph(s.ctx, spec.Nodes, spec.Edges, spec.MaximumDistance, spec.Directed)
		}
		return loaded(s, func(host *plugins.Host) error {
			return probe.LoadGraph(s.ctx, host, spec.Nodes, spec.Edges, spec.MaximumDistance, spec.Directed)
		}, take)
	}
	s.adapterResults(plugins.KindGraph, adaptertest.CheckGraph(s.ctx, h))
}
