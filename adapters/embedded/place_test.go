package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

var errNoExchange = errors.New("this file system cannot exchange")

func noExchange(_, _ string) error { return errNoExchange }

// built makes an index of so many chunks at path.
func built(t testing.TB, path string, chunks int) {
	t.Helper()
	if err := Write(t.Context(), path, large(chunks, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
}

func chunksIn(t testing.TB, dir string) int {
	t.Helper()
	return opened(t, dir, nil).Manifest().Counts.Chunks
}

func located(t testing.TB, dir string) place {
	t.Helper()
	p, err := locate(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Both ways to put an index in its place leave the new index and nothing else.
func TestInstall(t *testing.T) {
	for name, exchange := range map[string]func(a, b string) error{"exchange": exchange, "two renames": noExchange} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			p := located(t, filepath.Join(parent, "index"))
			built(t, p.dir, 1)
			built(t, p.fresh, 2)
			if err := p.install(true, exchange); err != nil {
				t.Fatal(err)
			}
			if got := chunksIn(t, p.dir); got != 2 {
				t.Errorf("%d chunks, want the new index with 2", got)
			}
			onlyIndexIn(t, parent, "index")
		})
	}
}

// Whatever a killed writer leaves, Open finds a whole index if there was one,
// and the next Write clears the rest.
func TestLeftovers(t *testing.T) {
	half := func(t testing.TB, path string) {
		built(t, path, 3)
		if err := os.Remove(filepath.Join(path, manifestName)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		make func(t testing.TB, p place)
		want int // chunks that Open finds, 0 for no index
	}{
		{"half a new index, no old one", func(t testing.TB, p place) { half(t, p.fresh) }, 0},
		{"a whole new index not yet in place", func(t testing.TB, p place) { built(t, p.fresh, 2) }, 0},
		{"half a new index beside the old one", func(t testing.TB, p place) { built(t, p.dir, 1); half(t, p.fresh) }, 1},
		{"exchanged, the old one half removed", func(t testing.TB, p place) { built(t, p.dir, 2); half(t, p.fresh) }, 2},
		{"between two renames", func(t testing.TB, p place) { built(t, p.aside, 1); built(t, p.fresh, 2) }, 1},
		{"between two renames, restarted", func(t testing.TB, p place) { built(t, p.aside, 1); half(t, p.fresh) }, 1},
		{"after two renames", func(t testing.TB, p place) { built(t, p.dir, 2); built(t, p.aside, 1) }, 2},
		{"the old one half removed", func(t testing.TB, p place) { built(t, p.dir, 2); half(t, p.aside) }, 2},
		{"the lock of a killed writer", func(t testing.TB, p place) {
			built(t, p.dir, 1)
			unlock, err := p.takeLock()
			if err != nil {
				t.Fatal(err)
			}
			unlock()
			if err := os.WriteFile(p.lock, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			p := located(t, filepath.Join(parent, "index"))
			c.make(t, p)
			if c.want > 0 {
				if got := chunksIn(t, p.dir); got != c.want {
					t.Errorf("%d chunks, want %d", got, c.want)
				}
			} else {
				_, err := Open(t.Context(), p.dir, nil)
				wantError(t, err, mapmatched.KindNotFound, "file does not exist")
			}
			if err := Write(t.Context(), p.dir, large(9, 5, 1), nil); err != nil {
				t.Fatal(err)
			}
			if got := chunksIn(t, p.dir); got != 9 {
				t.Errorf("after the next Write %d chunks, want 9", got)
			}
			onlyIndexIn(t, parent, "index")
		})
	}
}

// A file of the user's in a place that Write uses is not removed.
func TestLeftoversAreOnlyOurs(t *testing.T) {
	for _, which := range []func(place) string{func(p place) string { return p.fresh }, func(p place) string { return p.aside }} {
		p := located(t, filepath.Join(t.TempDir(), "index"))
		built(t, p.dir, 1)
		path := filepath.Join(which(p), "thesis.md")
		if err := os.Mkdir(which(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("my only copy"), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, Write(t.Context(), p.dir, small(), nil), mapmatched.KindInvalid, "thesis.md", "move it away")
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if got := chunksIn(t, p.dir); got != 1 {
			t.Errorf("%d chunks, want 1", got)
		}
	}
}

// Opening while the index is being replaced gives one of the indexes, whole,
// whichever way the replacing goes.
func TestOpenWhileReplacing(t *testing.T) {
	for name, exchange := range map[string]func(a, b string) error{"exchange": exchange, "two renames": noExchange} {
		t.Run(name, func(t *testing.T) {
			p := located(t, filepath.Join(t.TempDir(), "index"))
			built(t, p.dir, 1)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						x, err := Open(t.Context(), p.dir, nil)
						if err != nil {
							t.Error(err)
							return
						}
						n := x.Manifest().Counts.Chunks
						ids, err := x.ChunkIDs(t.Context())
						if err != nil || len(ids) != n || n < 1 || n > 3 {
							t.Errorf("%d IDs of %d chunks, %v", len(ids), n, err)
						}
						_ = x.Close() // nil by contract, checked in TestClose
					}
				})
			}
			for i := range 40 {
				built(t, p.fresh, 2+i%2)
				if err := p.install(true, exchange); err != nil {
					t.Error(err)
					break
				}
			}
			close(stop)
			wg.Wait()
		})
	}
}
