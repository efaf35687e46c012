package faiss

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// A file that is overwritten while it is open gives hits or an error of kind
// corrupt, never the end of the program.
func TestFileOverwrittenWhileOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what happens is up to the system")
	}
	queries := expected(t).Queries
	for len(queries) < leastBatch {
		queries = append(queries, queries...)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for name := range goTypes {
		whole := contents(t, name+".faiss")
		noise := make([]byte, len(whole))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		other := append(bytes.Clone(whole[len(whole)/2:]), whole[:len(whole)/2]...)
		for what, data := range map[string][]byte{
			"zeros": make([]byte, len(whole)), "ones": bytes.Repeat([]byte{0xff}, len(whole)),
			"small numbers": bytes.Repeat([]byte{1, 0, 0, 0}, len(whole)/4+1)[:len(whole)],
			"large numbers": bytes.Repeat([]byte{0x70}, len(whole)), "noise": noise, "its halves the other way": other,
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				path := file(t, "x.faiss", whole)
				x := opened(t, path, &IndexOptions{Engine: EngineGo})
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.WriteAt(data, 0)
				if err := errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
				for _, k := range []int{1, 9, 100} {
					_, err := x.Search(t.Context(), queries[0], k)
					hitsOrCorrupt(t, err)
					_, err = x.SearchBatch(t.Context(), queries, k)
					hitsOrCorrupt(t, err)
				}
				_, err = x.IDs(t.Context())
				hitsOrCorrupt(t, err)
			})
		}
	}
}

func hitsOrCorrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && mapmatched.KindOf(err) != mapmatched.KindCorrupt {
		t.Errorf("error %v of kind %q, want %q", err, mapmatched.KindOf(err), mapmatched.KindCorrupt)
	}
}

// Labels that are not in an ID map are damage.
func TestLabelsBeyondAnIDMap(t *testing.T) {
	for _, fill := range []byte{0x7f, 0x01, 0xff} {
		root, err := parse(bytes.Clone(contents(t, "idmap_ivf.faiss")))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range root.(*idMap).inner.(*ivf).lists {
			copy(l.ids, bytes.Repeat([]byte{fill}, len(l.ids)))
		}
		query := make([]float32, root.header().dimension)
		if _, err := root.search(t.Context(), query, 3, nil); !errors.Is(err, errDamaged) {
			t.Errorf("labels of %#x: search: error %v", fill, err)
		}
		if _, err := root.batch(t.Context(), [][]float32{query}, 3, nil); !errors.Is(err, errDamaged) {
			t.Errorf("labels of %#x: batch: error %v", fill, err)
		}
		if _, err := (&goEngine{root: root}).ids(t.Context()); !errors.Is(err, errDamaged) {
			t.Errorf("labels of %#x: IDs: error %v", fill, err)
		}
	}
}

// Vectors that get another ID while a provider is open are damage, not vectors
// of other chunks.
func TestIDsChangedUnderAProvider(t *testing.T) {
	path := written(t, MetricL2, vectors(20, 4, 1), ownIDs(20))
	entries := chunks(20)
	for i, id := range ownIDs(20) {
		entries[i].FaissID = &id
	}
	p, err := NewProvider(t.Context(), opened(t, path, &IndexOptions{Engine: EngineGo}), entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{77}, int64(len(data)-8))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = p.Vectors(t.Context(), []string{"c3"})
		wantError(t, err, mapmatched.KindCorrupt, fmt.Sprint("FAISS ID ", 1000&^0xff+77), "changed")
	}
}
