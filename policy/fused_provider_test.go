package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// providerFunc is a provider that is a function.
type providerFunc func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error)

func (f providerFunc) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return f(ctx, q, limit)
}

// finds is a provider that always finds the same.
func finds(pairs ...any) providerFunc {
	return func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) {
		return list(pairs...), nil
	}
}

func fails(err error) providerFunc {
	return func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) { return nil, err }
}

// sleeps answers after a while, or with the error of its context.
func sleeps(d time.Duration, then providerFunc) providerFunc {
	return func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
		select {
		case <-time.After(d):
			return then(ctx, q, limit)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stuck does not look at its context and answers when released.
func stuck(release <-chan struct{}) providerFunc {
	return func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) {
		<-release
		return nil, nil
	}
}

// reports collects what is reported.
type reports struct {
	mu  sync.Mutex
	all []Degraded
}

func (r *reports) add(d Degraded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func mustProvider(t testing.TB, u Fusion, dense, lexical mapmatched.CandidateProvider, opts *FusedOptions) *FusedProvider {
	t.Helper()
	p, err := NewFusedProvider(u, []FusedArm{{ArmLexical, lexical}, {ArmDense, dense}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFusedProviderFusesItsArms(t *testing.T) {
	u := DefaultFusion()
	p := mustProvider(t, u, finds("a", 0.9, "b", 0.7, "c", 0.5), finds("b", 12.0, "a", 4.0), &FusedOptions{
		Report: func(d Degraded) { t.Errorf("reported %v", d) },
	})
	got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 2)
	if err != nil || scoreText(got) != "a 0.7, b 0.65" {
		t.Errorf("%s (%v)", scoreText(got), err)
	}
	if _, marked := got[0].Metadata[MetadataDegraded]; marked {
		t.Error("marked as degraded although both arms answered")
	}
	u.Arms[ArmDense] = FusionArm{Weight: 0}
	if again, err := p.Candidates(t.Context(), mapmatched.Query{}, 2); err != nil || scoreText(again) != scoreText(got) {
		t.Errorf("a change of the policy reached the provider: %s (%v)", scoreText(again), err)
	}
}

func TestFusedProviderAsksArmsForMore(t *testing.T) {
	for _, c := range []struct{ armLimit, limit, want int }{
		{0, 5, DefaultArmLimit}, {0, 500, 500}, {7, 5, 7}, {7, 50, 50}, {0, math.MaxInt, math.MaxInt},
	} {
		arm := providerFunc(func(_ context.Context, _ mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if limit != c.want {
				t.Errorf("arm limit %d, limit %d: the arm is asked for %d, want %d", c.armLimit, c.limit, limit, c.want)
			}
			return nil, nil
		})
		got, err := mustProvider(t, DefaultFusion(), arm, arm, &FusedOptions{ArmLimit: c.armLimit}).Candidates(t.Context(), mapmatched.Query{}, c.limit)
		if err != nil || len(got) != 0 {
			t.Errorf("%v (%v), want no candidates", got, err)
		}
	}
}

func TestFusedProviderDegradesVisibly(t *testing.T) {
	away := &mapmatched.Error{Op: "candidates", Adapter: "test", Kind: mapmatched.KindUnavailable, Err: errors.New("connection refused")}
	for _, c := range []struct {
		name     string
		lexical  mapmatched.CandidateProvider
		timedOut bool
		is       error
		text     string
	}{
		{"a dead arm", fails(away), false, away, "connection refused"},
		{"a slow arm", sleeps(time.Hour, finds("b", 1.0)), true, context.DeadlineExceeded, "no answer within 1s"},
		{"an arm that returns score NaN", finds("b", math.NaN()), false, mapmatched.ErrNonFinite, `chunk "b": score NaN`},
		{"an arm that returns no ID", finds("", 1.0), false, mapmatched.ErrEmptyChunkID, "candidate 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r reports
				p := mustProvider(t, DefaultFusion(), finds("a", 0.9, "b", 0.7), c.lexical, &FusedOptions{Report: r.add})
				got, err := p.Candidates(t.Context(), mapmatched.Query{Turn: 3}, 10)
				if err != nil || scoreText(got) != "a 0.7, b 0" {
					t.Fatalf("%s (%v), want what the other arm found", scoreText(got), err)
				}
				if len(r.all) != 1 || r.all[0].Arm != ArmLexical || r.all[0].Turn != 3 || r.all[0].TimedOut != c.timedOut ||
					!errors.Is(r.all[0].Err, c.is) || !strings.Contains(r.all[0].String(), c.text) {
					t.Errorf("reported %v", r.all)
				}
				for _, candidate := range got {
					if names, _ := candidate.Metadata[MetadataDegraded].([]string); !slices.Equal(names, []string{ArmLexical}) {
						t.Errorf("%s: metadata %v", candidate.ChunkID, candidate.Metadata)
					}
					if _, counted := candidate.Parts[PartArm+ArmLexical]; counted || candidate.Parts[PartDegraded+ArmLexical] != 1 {
						t.Errorf("%s: parts %v", candidate.ChunkID, candidate.Parts)
					}
				}
			})
		})
	}
}

func TestFusedProviderSlowArmWithinItsTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustProvider(t, DefaultFusion(), finds("a", 0.9, "b", 0.7), sleeps(999*time.Millisecond, finds("b", 1.0)), &FusedOptions{
			Report: func(d Degraded) { t.Errorf("reported %v", d) },
		})
		if got, err := p.Candidates(t.Context(), mapmatched.Query{}, 10); err != nil || scoreText(got) != "a 0.7, b 0.3" {
			t.Errorf("%s (%v)", scoreText(got), err)
		}
	})
}

func TestFusedProviderArmsRunAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := mustProvider(t, DefaultFusion(), sleeps(600*time.Millisecond, finds("a", 1.0)), sleeps(600*time.Millisecond, finds("a", 1.0)), nil)
		if _, err := p.Candidates(t.Context(), mapmatched.Query{}, 10); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 600*time.Millisecond { // the clock of the bubble, not that of the wall
			t.Errorf("two arms of 600ms took %v", d)
		}
	})
}

func TestFusedProviderWithoutTimeoutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := fusion(RRFV1, map[string]FusionArm{ArmDense: {Weight: 1}, ArmLexical: {Weight: 1, TimeoutMS: 5}})
		p := mustProvider(t, u, sleeps(24*time.Hour, finds("a", 1.0)), finds("a", 1.0), nil)
		if got, err := p.Candidates(t.Context(), mapmatched.Query{}, 10); err != nil || len(got) != 1 {
			t.Errorf("%v (%v)", got, err)
		}
	})
}

func TestFusedProviderArmThatIgnoresItsContextDelaysNobody(t *testing.T) {
	// synctest fails the test if a goroutine of the bubble outlives the release.
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var r reports
		p := mustProvider(t, DefaultFusion(), finds("a", 0.9), stuck(release), &FusedOptions{Report: r.add})
		for range 20 {
			if got, err := p.Candidates(t.Context(), mapmatched.Query{}, 10); err != nil || len(got) != 1 {
				t.Errorf("%v (%v)", got, err)
			}
		}
		if len(r.all) != 20 || !r.all[0].TimedOut {
			t.Errorf("%d reports", len(r.all))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if got, err := p.Candidates(ctx, mapmatched.Query{}, 10); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("%v and %v, want context.Canceled", got, err)
		}
		close(release)
	})
}

func TestFusedProviderAllArmsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		p := mustProvider(t, DefaultFusion(), fails(refused), sleeps(time.Hour, nil), &FusedOptions{
			Report: func(d Degraded) { t.Errorf("reported %v beside an error", d) },
		})
		got, err := p.Candidates(t.Context(), mapmatched.Query{}, 10)
		if got != nil || !errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v and %v", got, err)
		}
		const want = `fused provider: no arm answered: arm "dense": connection refused; arm "lexical": no answer within 1s: context deadline exceeded`
		if err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	})
}

func TestFusedProviderDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustProvider(t, DefaultFusion(), finds("a", 0.9), sleeps(time.Hour, nil), &FusedOptions{
			Report: func(d Degraded) { t.Errorf("reported %v", d) },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got, err := p.Candidates(ctx, mapmatched.Query{}, 10); !errors.Is(err, context.DeadlineExceeded) || got != nil {
			t.Errorf("%v and %v: the caller's deadline is no degradation", got, err)
		}
	})
}

func TestNewFusedProviderFaults(t *testing.T) {
	ok := finds("a", 1.0)
	for _, c := range []struct {
		name string
		u    Fusion
		arms []FusedArm
		opts *FusedOptions
		want []string
	}{
		{"a weight without an arm", DefaultFusion(), []FusedArm{{ArmDense, ok}}, nil, []string{"fusion.arms.lexical has no provider, so its weight would do nothing"}},
		{"an arm without a weight", DefaultFusion(), []FusedArm{{ArmDense, ok}, {ArmLexical, ok}, {"sparse", ok}}, nil, []string{`arm "sparse" is not in fusion.arms`}},
		{"an arm twice", DefaultFusion(), []FusedArm{{ArmDense, ok}, {ArmLexical, ok}, {ArmDense, ok}}, nil, []string{`arm "dense" is given twice`}},
		{"everything at once", fusion(GeometricV1, map[string]FusionArm{ArmDense: {Weight: 0}}), []FusedArm{{ArmDense, nil}}, &FusedOptions{ArmLimit: -1},
			[]string{"fuses no arms", "at least one has a weight above 0", `arm "dense" has no provider`, "the arm limit is -1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewFusedProvider(c.u, c.arms, c.opts)
			if !errors.Is(err, mapmatched.ErrInvalidConfig) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

type closer struct {
	providerFunc
	err    error
	closed int
}

func (c *closer) Close() error {
	c.closed++
	return c.err
}

func TestFusedProviderClosesItsArms(t *testing.T) {
	broken := errors.New("disk is gone")
	dense, lexical := &closer{finds("a", 1.0), broken, 0}, &closer{finds("a", 1.0), nil, 0}
	p := mustProvider(t, DefaultFusion(), dense, lexical, nil)
	if err := p.Close(); !errors.Is(err, broken) || !strings.Contains(err.Error(), `"dense"`) {
		t.Errorf("Close: %v", err)
	}
	if err := p.Close(); err != nil || dense.closed != 1 || lexical.closed != 1 {
		t.Errorf("Close again: %v, arms closed %d and %d times", err, dense.closed, lexical.closed)
	}
	if _, err := p.Candidates(t.Context(), mapmatched.Query{}, 5); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// fusedHarness fuses the two arms of an embedded index of the suite's corpus.
// The index is written once; every provider opens it anew.
func fusedHarness(t *testing.T, version string) adaptertest.ProviderHarness {
	c := adaptertest.NewCorpus()
	dir := t.TempDir() + "/index"
	if err := embedded.Write(t.Context(), dir, embedded.Input{Chunks: c.Chunks, Vectors: c.Vectors,
		VectorIdentity: embedded.VectorIdentity{Provider: "test", Model: "words"}}, nil); err != nil {
		t.Fatal(err)
	}
	open := func(arm embedded.Arm) mapmatched.CandidateProvider {
		x, err := embedded.Open(t.Context(), dir, &embedded.Options{Arm: arm, Embedder: c})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	return adaptertest.ProviderHarness{
		New: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
			return NewFusedProvider(fusion(version, map[string]FusionArm{ArmDense: {Weight: 0.7}, ArmLexical: {Weight: 0.3}}), []FusedArm{{ArmDense, open(embedded.ArmDense)}, {ArmLexical, open(embedded.ArmLexical)}}, nil)
		},
		Stalled: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
			u := fusion(version, map[string]FusionArm{ArmDense: {Weight: 0.7}, ArmLexical: {Weight: 0.3}})
			release := make(chan struct{})
			t.Cleanup(func() { close(release) })
			return NewFusedProvider(u, []FusedArm{{ArmDense, open(embedded.ArmDense)}, {ArmLexical, stuck(release)}}, nil)
		},
		AlwaysHits: true, // as the dense arm has
	}
}

func TestFusedProviderConforms(t *testing.T) {
	adaptertest.Provider(t, fusedHarness(t, HybridFusionPreV1))
}

func TestFusedProviderConformsByRank(t *testing.T) {
	for _, r := range adaptertest.CheckProvider(t.Context(), fusedHarness(t, RRFV1)) {
		// Ranks tell two chunks of the same text apart, which scores do not.
		if failed := r.Err != nil; failed != (r.Check == "same text is not the same chunk") {
			t.Errorf("%s: %v", r.Check, r.Err)
		}
	}
}

func ExampleFusedProvider() {
	fusion := DefaultFusion()
	dense := finds("tides", 0.82, "moon", 0.74, "harbour", 0.61)
	lexical := fails(errors.New("connection refused"))
	p, err := NewFusedProvider(fusion, []FusedArm{{ArmDense, dense}, {ArmLexical, lexical}}, &FusedOptions{
		Report: func(d Degraded) { fmt.Println(d) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := p.Candidates(context.Background(), mapmatched.Query{Text: "what pulls the sea"}, 2)
	fmt.Println(len(found), err)
	for _, c := range found {
		fmt.Printf("%s %.3f\n", c.ChunkID, c.Score)
	}
	// Output:
	// turn 0: arm "lexical" did not take part: connection refused
	// 2 <nil>
	// tides 0.700
	// moon 0.433
}
