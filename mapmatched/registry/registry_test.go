package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// opened is what the test openers return: it remembers what it was opened with.
type opened struct {
	at     Location
	arm    string
	limit  int
	closed bool
}

func (o *opened) Candidates(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) {
	return nil, nil
}
func (o *opened) Close() error { o.closed = true; return nil }

func storeOpener() ProviderOpener {
	return ProviderOpener{
		Doc: Doc{
			Summary: "a store for tests",
			Parameters: []Parameter{
				{Name: "arm", Usage: "lexical or dense", Default: "lexical"},
				{Name: "limit", Usage: "candidates, 1 to 100", Default: "20"},
				{Name: "api_key_env", Usage: "variable with the key"},
			},
		},
		Open: func(_ context.Context, at Location, p *Params) (mapmatched.CandidateProvider, error) {
			o := &opened{at: at, arm: p.Enum("arm", "lexical", "lexical", "dense"), limit: p.Int("limit", 20, 1, 100)}
			p.Secret("api_key")
			return o, p.Err()
		},
	}
}

func TestOpenLocations(t *testing.T) {
	var r Registry
	r.RegisterProvider("store", storeOpener())
	for _, c := range []struct {
		url  string
		want Location
	}{
		{"store:path/to/dir?arm=dense", Location{Path: "path/to/dir"}},
		{"store:./dir", Location{Path: "./dir"}},
		{"store:../dir", Location{Path: "../dir"}},
		{"store:/abs/x.faiss?limit=3", Location{Path: "/abs/x.faiss"}},
		{"store:///abs/dir", Location{Path: "/abs/dir"}},
		{"store:my dir/100%25", Location{Path: "my dir/100%"}},
		{"store:/my%20dir/a%3Fb%23c", Location{Path: "/my dir/a?b#c"}},
		{`store:C:\data\index`, Location{Path: `C:\data\index`}},
		{"store:C:/data", Location{Path: "C:/data"}},
		{"store:故乡/ä", Location{Path: "故乡/ä"}},
		{"store:", Location{}},
		{"store:a@b:c", Location{Path: "a@b:c"}},
		{"STORE:x", Location{Path: "x"}},
		{"store://host:6334/collection?limit=5", Location{Host: "host", Port: "6334", Path: "/collection"}},
		{"store://[::1]:6334/c", Location{Host: "::1", Port: "6334", Path: "/c"}},
		{"store://host", Location{Host: "host"}},
	} {
		c.want.Scheme = "store"
		p, err := r.OpenProvider(context.Background(), c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if got := p.(*opened).at; got != c.want {
			t.Errorf("%s: location %+v, want %+v", c.url, got, c.want)
		}
	}
}

func TestOpenReadsParameters(t *testing.T) {
	var r Registry
	r.RegisterProvider("store", storeOpener())
	p, err := r.OpenProvider(context.Background(), "store:x?arm=dense&&limit=7")
	if err != nil {
		t.Fatal(err)
	}
	if o := p.(*opened); o.arm != "dense" || o.limit != 7 {
		t.Errorf("arm %q, limit %d, want dense, 7", o.arm, o.limit)
	}
	if p, err = r.OpenProvider(context.Background(), "store:x"); err != nil {
		t.Fatal(err)
	}
	if o := p.(*opened); o.arm != "lexical" || o.limit != 20 {
		t.Errorf("arm %q, limit %d, want the defaults lexical, 20", o.arm, o.limit)
	}
}

func TestOpenFaults(t *testing.T) {
	var r Registry
	r.RegisterProvider("store", storeOpener())
	r.RegisterProvider("other", storeOpener())
	r.RegisterGraph("roads", GraphOpener{Doc: Doc{Summary: "a graph"}, Open: func(context.Context, Location, *Params) (mapmatched.CorpusGraph, error) {
		return nil, errors.New("unused")
	}})
	const sesame = "hunter2"
	for _, c := range []struct {
		url, adapter string
		want         []string
	}{
		{"", "registry", []string{"URL is empty"}},
		{"dir/index", "registry", []string{"no scheme", "SCHEME:PATH"}},
		{"./a:b", "registry", []string{"no scheme"}},
		{`C:\data\index`, "registry", []string{"drive letter", "SCHEME:c:PATH"}},
		{"1st:x", "registry", []string{`"1st" is not a scheme`}},
		{":x", "registry", []string{`"" is not a scheme`}},
		{"stor:x", "registry", []string{`unknown scheme "stor"`, "other, store", `did you mean "store"?`}},
		{"zebra:x", "registry", []string{`unknown scheme "zebra"`, "other, store"}},
		{"roads:x", "registry", []string{`scheme "roads" opens a graph, not a provider`, "other, store"}},
		{"store:a%zz", "registry", []string{"%25"}},
		{"store:/a%zz", "registry", []string{"%25"}},
		{"store:a%00b", "registry", []string{"zero byte"}},
		{"store:a\nb", "registry", []string{"control characters"}},
		{"store:dir#1", "registry", []string{"%23"}},
		{"store:dir?limit=1#x", "registry", []string{"%23"}},
		{"store://host:/c", "registry", []string{"port is missing"}},
		{"store://ho st/c", "registry", []string{"host has a character"}},
		{"store://host:" + sesame + "/c", "registry", []string{"malformed"}},
		{"store://" + sesame + "@host/c", "registry", []string{"user name or password", "environment"}},
		{"store://user:" + sesame + "@host/c", "registry", []string{"user name or password"}},
		{"store://user:" + sesame + "/x@host/c", "registry", []string{"malformed"}},
		{"store:x?limit=many", "store", []string{`limit="many"`, "integer from 1 to 100"}},
		{"store:x?limit=0", "store", []string{`limit="0"`, "from 1 to 100"}},
		{"store:x?limit=101", "store", []string{`limit="101"`}},
		{"store:x?limit=8.9", "store", []string{`limit="8.9"`}},
		{"store:x?limit=", "store", []string{"parameter limit has no value"}},
		{"store:x?limit=1&limit=2", "store", []string{`limit="2" is given again`}},
		{"store:x?limt=3", "store", []string{`limt="3" is unknown`, "arm, limit, api_key_env", `did you mean "limit"?`}},
		{"store:x?Limit=3", "store", []string{`Limit="3" is unknown`, `did you mean "limit"?`}},
		{"store:x?arm=dens", "store", []string{`arm="dens"`, "lexical, dense", `did you mean "dense"?`}},
		{"store:x?" + sesame, "store", []string{"parameter 1 is not of the form name=value"}},
		{"store:x?limit=1&=" + sesame, "store", []string{"parameter 2 is not of the form name=value"}},
		{"store:x?arm=%zz", "store", []string{"parameter 1 has a %"}},
		{"store:x?api_key=" + sesame, "store", []string{`"api_key"`, "api_key_env"}},
		{"store:x?api_key=" + sesame + "%zz", "store", []string{`"api_key"`, "api_key_env"}},
		{"store:x?token=" + sesame, "store", []string{`"token"`, "api_key_env"}},
		{"store:x?apiKey=" + sesame, "store", []string{`"apiKey"`}},
		{"store:x?db.password=" + sesame, "store", []string{`"db.password"`}},
		{"store:x?api%5Fkey=" + sesame, "store", []string{`"api_key"`}},
		{"store:x?api_key_env=MMPLUG_TEST_UNSET", "store", []string{"MMPLUG_TEST_UNSET is not set", "api_key_env"}},
		{"store:x?api_key_env=" + sesame, "store", []string{"variable named there is not set"}},
		{"store:x?limit=0&arm=no&q=1", "store", []string{"3 faults", `limit="0"`, `arm="no"`, `q="1" is unknown`}},
	} {
		p, err := r.OpenProvider(context.Background(), c.url)
		if err == nil || p != nil {
			t.Errorf("%q: opened %v with error %v, want an error and nothing", c.url, p, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %q lacks %q", c.url, err, part)
			}
		}
		if strings.Contains(err.Error(), sesame) {
			t.Errorf("%q: error %q gives the secret away", c.url, err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %q is not one line", c.url, err)
		}
		var typed *mapmatched.Error
		if !errors.As(err, &typed) {
			t.Errorf("%q: error is a %T, want a *mapmatched.Error", c.url, err)
			continue
		}
		if typed.Adapter != c.adapter || typed.Op != "open" || typed.Kind != mapmatched.KindInvalid {
			t.Errorf("%q: adapter %q, operation %q, kind %q, want %q, open, invalid", c.url, typed.Adapter, typed.Op, typed.Kind, c.adapter)
		}
	}
}

func TestOpenEmptyRegistry(t *testing.T) {
	var r Registry
	_, err := r.OpenReranker(context.Background(), "store:x")
	if err == nil || !strings.Contains(err.Error(), "import the adapter's package") {
		t.Errorf("error %v, want the advice to import an adapter", err)
	}
}

func TestOpenWrapsOnce(t *testing.T) {
	typed := &mapmatched.Error{Op: "connect", Adapter: "deep", Kind: mapmatched.KindUnavailable, Err: errors.New("refused")}
	for _, c := range []struct {
		name string
		err  error
		kind mapmatched.Kind
		text string
	}{
		{"typed", typed, mapmatched.KindUnavailable, "deep: connect: refused"},
		{"typed inside", fmt.Errorf("outer: %w", typed), mapmatched.KindUnavailable, "outer: deep: connect: refused"},
		{"plain", errors.New("broken"), "", "store: open: broken"},
		{"deadline", fmt.Errorf("dial: %w", context.DeadlineExceeded), mapmatched.KindDeadline, "store: open: dial: context deadline exceeded"},
		{"not there", fmt.Errorf("index: %w", fs.ErrNotExist), mapmatched.KindNotFound, "store: open: index: file does not exist"},
	} {
		var r Registry
		r.RegisterProvider("store", ProviderOpener{Doc: Doc{Summary: "fails"}, Open: func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) {
			return &opened{}, c.err
		}})
		p, err := r.OpenProvider(context.Background(), "store:x")
		if p != nil || !errors.Is(err, c.err) || mapmatched.KindOf(err) != c.kind || err.Error() != c.text {
			t.Errorf("%s: %v, error %q of kind %q, want none, %q of kind %q", c.name, p, err, mapmatched.KindOf(err), c.text, c.kind)
		}
	}
}

func TestOpenDoneContext(t *testing.T) {
	var r Registry
	o := storeOpener()
	o.Open = func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) {
		t.Error("opener was called with a context that is done")
		return &opened{}, nil
	}
	r.RegisterProvider("store", o)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.OpenProvider(ctx, "store:x"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	if _, err := r.OpenProvider(ctx, "store:x"); !errors.Is(err, context.DeadlineExceeded) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
		t.Errorf("past deadline: error %v of kind %q, want context.DeadlineExceeded of kind deadline", err, mapmatched.KindOf(err))
	}
}

func TestOpenChecksForForgetfulOpeners(t *testing.T) {
	var r Registry
	o := storeOpener()
	made := &opened{}
	o.Open = func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) { return made, nil }
	r.RegisterProvider("store", o)
	_, err := r.OpenProvider(context.Background(), "store:x?limit=3")
	if err == nil || !strings.Contains(err.Error(), `limit="3" has no effect`) {
		t.Errorf("error %v, want one about the parameter that was not read", err)
	}
	if !made.closed {
		t.Error("what was opened beside a fault was not closed")
	}
	o.Open = func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) { return nil, nil }
	r.RegisterProvider("nothing", o)
	if _, err := r.OpenProvider(context.Background(), "nothing:x"); err == nil || !strings.Contains(err.Error(), "no provider and no error") {
		t.Errorf("error %v, want one about the missing provider", err)
	}
}

func TestRegisterPanics(t *testing.T) {
	summary := Doc{Summary: "x"}
	openNothing := func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) { return nil, nil }
	with := func(d Doc) ProviderOpener { return ProviderOpener{Doc: d, Open: openNothing} }
	for _, c := range []struct {
		name, scheme string
		o            ProviderOpener
		want         string
	}{
		{"duplicate", "taken", with(summary), "registered twice"},
		{"empty scheme", "", with(summary), "not a scheme"},
		{"upper case", "Store", with(summary), "not a scheme"},
		{"one letter", "c", with(summary), "not a scheme"},
		{"digit first", "1st", with(summary), "not a scheme"},
		{"with colon", "store:", with(summary), "not a scheme"},
		{"no function", "store", ProviderOpener{Doc: summary}, "no Open function"},
		{"no summary", "store", with(Doc{}), "summary"},
		{"two lines", "store", with(Doc{Summary: "a\nb"}), "summary"},
		{"bad name", "store", with(Doc{Summary: "x", Parameters: []Parameter{{Name: "a b"}}}), "parameter name"},
		{"no name", "store", with(Doc{Summary: "x", Parameters: []Parameter{{}}}), "parameter name"},
		{"listed twice", "store", with(Doc{Summary: "x", Parameters: []Parameter{{Name: "a"}, {Name: "a"}}}), "listed twice"},
		{"literal secret", "store", with(Doc{Summary: "x", Parameters: []Parameter{{Name: "api_key"}}}), "api_key_env"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Registry
			r.RegisterProvider("taken", with(summary))
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("panic %q, want %q in it", got, c.want)
				}
			}()
			r.RegisterProvider(c.scheme, c.o)
		})
	}
}

func TestReadingAnUndocumentedParameterPanics(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `"hidden"`) {
			t.Errorf("panic %q, want the parameter's name in it", got)
		}
	}()
	newParams("store", Doc{}, "").String("hidden", "")
}

// engine implements the three other kinds.
type engine struct{}

func (engine) MaximumDistance() float64                                       { return 1 }
func (engine) Distances(context.Context, []string, []string, []float64) error { return nil }
func (engine) Embed(context.Context, []string) ([][]float32, error)           { return nil, nil }
func (engine) Neighborhood(context.Context, string, float64) ([]mapmatched.Neighbor, error) {
	return nil, nil
}
func (engine) Rerank(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	return nil, nil
}

func TestFourKindsShareAScheme(t *testing.T) {
	var r Registry
	doc := Doc{Summary: "everything", Parameters: []Parameter{{Name: "n"}}}
	r.RegisterReranker("all", RerankerOpener{doc, func(context.Context, Location, *Params) (mapmatched.Reranker, error) { return engine{}, nil }})
	r.RegisterEmbedder("all", EmbedderOpener{doc, func(context.Context, Location, *Params) (mapmatched.Embedder, error) { return engine{}, nil }})
	r.RegisterGraph("all", GraphOpener{doc, func(context.Context, Location, *Params) (mapmatched.CorpusGraph, error) { return engine{}, nil }})
	r.RegisterProvider("all", ProviderOpener{doc, func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) { return &opened{}, nil }})
	r.RegisterGraph("abc", GraphOpener{doc, func(context.Context, Location, *Params) (mapmatched.CorpusGraph, error) { return engine{}, nil }})
	ctx := context.Background()
	if p, err := r.OpenProvider(ctx, "all:x"); p == nil || err != nil {
		t.Errorf("provider %v, error %v", p, err)
	}
	if g, err := r.OpenGraph(ctx, "all:x"); g == nil || err != nil {
		t.Errorf("graph %v, error %v", g, err)
	}
	if e, err := r.OpenEmbedder(ctx, "all:x"); e == nil || err != nil {
		t.Errorf("embedder %v, error %v", e, err)
	}
	if k, err := r.OpenReranker(ctx, "all:x"); k == nil || err != nil {
		t.Errorf("reranker %v, error %v", k, err)
	}
	var got []string
	for _, e := range r.Entries() {
		got = append(got, e.Scheme+" "+string(e.Kind))
		e.Doc.Parameters[0].Name = "changed" // must not reach the registry
	}
	want := []string{"abc graph", "all provider", "all graph", "all embedder", "all reranker"}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
	if name := r.Entries()[0].Doc.Parameters[0].Name; name != "n" {
		t.Errorf("parameter is called %q after a caller changed its copy, want n", name)
	}
}

func TestDefaultHelpers(t *testing.T) {
	doc := Doc{Summary: "for TestDefaultHelpers"}
	RegisterProvider("helpers", ProviderOpener{doc, func(context.Context, Location, *Params) (mapmatched.CandidateProvider, error) { return &opened{}, nil }})
	RegisterGraph("helpers", GraphOpener{doc, func(context.Context, Location, *Params) (mapmatched.CorpusGraph, error) { return engine{}, nil }})
	RegisterEmbedder("helpers", EmbedderOpener{doc, func(context.Context, Location, *Params) (mapmatched.Embedder, error) { return engine{}, nil }})
	RegisterReranker("helpers", RerankerOpener{doc, func(context.Context, Location, *Params) (mapmatched.Reranker, error) { return engine{}, nil }})
	ctx := context.Background()
	_, providerErr := OpenProvider(ctx, "helpers:x")
	_, graphErr := OpenGraph(ctx, "helpers:x")
	_, embedderErr := OpenEmbedder(ctx, "helpers:x")
	_, rerankerErr := OpenReranker(ctx, "helpers:x")
	if err := errors.Join(providerErr, graphErr, embedderErr, rerankerErr); err != nil {
		t.Error(err)
	}
	if n := len(Default().Entries()); n != 4 {
		t.Errorf("the default registry has %d entries, want 4", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	var r Registry
	r.RegisterProvider("store", storeOpener())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			r.RegisterProvider(fmt.Sprintf("store%d", i), storeOpener())
			if _, err := r.OpenProvider(context.Background(), "store:x?limit=3"); err != nil {
				t.Error(err)
			}
			if len(r.Entries()) < 2 {
				t.Error("an own registration is missing from the entries")
			}
		})
	}
	wg.Wait()
	if n := len(r.Entries()); n != 17 {
		t.Errorf("%d entries, want 17", n)
	}
}

func TestLocationFile(t *testing.T) {
	for _, c := range []struct {
		at         Location
		want, lack string
	}{
		{Location{Scheme: "embedded", Path: "a/b"}, "a/b", ""},
		{Location{Scheme: "embedded", Path: "/a/b"}, "/a/b", ""},
		{Location{Scheme: "embedded"}, "", "write embedded:PATH"},
		{Location{Scheme: "embedded", Host: "a", Path: "/b"}, "", `"a" is read as a host`},
		{Location{Scheme: "embedded", Host: "a", Port: "1", Path: "/b"}, "", `"a:1" is read as a host`},
	} {
		got, err := c.at.File()
		if got != c.want {
			t.Errorf("%+v: path %q, want %q", c.at, got, c.want)
		}
		if c.lack == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.lack) {
			t.Errorf("%+v: error %v, want %q", c.at, err, c.lack)
		}
	}
}
