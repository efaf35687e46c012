package faiss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// stored are the vectors and IDs of an index by position.
func stored(t testing.TB, name string) (rows [][]float32, ids []int64) {
	t.Helper()
	root, err := parse(contents(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for at := range root.len() {
		rows = append(rows, root.row(at))
		ids = append(ids, root.label(at))
	}
	return rows, ids
}

// The writer writes what FAISS writes, byte for byte.
func TestWriteFlatIsWhatFAISSWrites(t *testing.T) {
	for _, c := range []struct {
		name   string
		metric Metric
		ids    bool
	}{{"flat_ip", MetricInnerProduct, false}, {"flat_l2", MetricL2, false}, {"idmap2_l2", MetricL2, true}, {"empty", MetricL2, false}} {
		rows, ids := stored(t, c.name+".faiss")
		if !c.ids {
			ids = nil
		}
		var b bytes.Buffer
		if err := WriteFlat(&b, c.metric, 12, rows, ids); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), contents(t, c.name+".faiss")) {
			t.Errorf("%s: other bytes than FAISS wrote", c.name)
		}
	}
}

func TestWriteFlatRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		metric    Metric
		dimension int
		rows      [][]float32
		ids       []int64
		part      string
	}{
		{MetricL1, 0, [][]float32{{1}}, nil, "L1"},
		{MetricL2, 0, nil, nil, "0 dimensions"},
		{MetricL2, -1, nil, nil, "-1 dimensions"},
		{MetricL2, 0, [][]float32{{}}, nil, "0 dimensions"},
		{MetricL2, 0, [][]float32{{1}, {1, 2}}, nil, "row 1 has 2 dimensions, want 1"},
		{MetricL2, 3, [][]float32{{1}}, nil, "row 0 has 1 dimensions, want 3"},
		{MetricL2, 0, [][]float32{{1}, {nan}}, nil, "row 1: value is not finite: component 0"},
		{MetricL2, 0, [][]float32{{1}, {2}}, []int64{1}, "1 IDs for 2 vectors"},
		{MetricL2, 0, [][]float32{{1}, {2}}, []int64{7, 7}, "FAISS ID 7 twice"},
		{MetricL2, 0, [][]float32{{1}, {2}}, []int64{7, -1}, "ID -1 is negative"},
	} {
		err := WriteFlat(&bytes.Buffer{}, c.metric, c.dimension, c.rows, c.ids)
		if err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("error %v, want %q", err, c.part)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "index.faiss")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := WriteFlatFile(path, MetricL2, 0, [][]float32{{nan}}, nil)
	wantError(t, err, mapmatched.KindInvalid, path, "row 0")
	after, err := os.ReadFile(path)
	files, _ := os.ReadDir(dir)
	if err != nil || string(after) != "before" || len(files) != 1 {
		t.Errorf("a failed write leaves %q and %d files, error %v", after, len(files), err)
	}
	if err := WriteFlatFile(filepath.Join(dir, "none", "x"), MetricL2, 1, nil, nil); mapmatched.KindOf(err) != mapmatched.KindNotFound {
		t.Errorf("error %v", err)
	}
}

// pythonEnv names a Python that has FAISS; .ci/faiss sets it.
const pythonEnv = "MMPLUG_TEST_FAISS_PYTHON"

func python(t *testing.T) string {
	t.Helper()
	p := os.Getenv(pythonEnv)
	if p == "" {
		t.Skip(pythonEnv + " names no Python with FAISS")
	}
	return p
}

// FAISS in Python reads what the writer wrote, and finds the same.
func TestPythonReadsFlat(t *testing.T) {
	interpreter := python(t)
	rows, queries := vectors(200, 24, 4), vectors(6, 24, 5)
	ids := make([]int64, len(rows))
	for i := range ids {
		ids[i] = math.MaxInt64 - int64(i*i)
	}
	asked, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		for _, ids := range [][]int64{nil, ids} {
			path := written(t, metric, rows, ids)
			cmd := exec.Command(interpreter, testFile("make.py"), "--read", path, file(t, "queries.json", asked))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var want expectation
			if err := json.Unmarshal(out, &want); err != nil {
				t.Fatal(err)
			}
			if want.Count != 200 || want.Dimension != 24 || want.Metric != metric {
				t.Errorf("Python reads %d vectors of %d dimensions by %v", want.Count, want.Dimension, want.Metric)
			}
			x := opened(t, path, nil)
			for i, q := range queries {
				hits, err := x.Search(t.Context(), q, len(want.IDs[i]))
				if err != nil {
					t.Fatal(err)
				}
				agree(t, fmt.Sprintf("%v, query %d", metric, i), hits, metric, want.IDs[i], want.Scores[i])
			}
		}
	}
}

// The test indexes are what the script makes today.
func TestPythonMakesTestdata(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(python(t), testFile("make.py"), dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	made, err := os.ReadDir(dir)
	if err != nil || len(made) < 20 {
		t.Fatalf("%d files, error %v", len(made), err)
	}
	for _, m := range made {
		if filepath.Ext(m.Name()) != ".faiss" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, m.Name()))
		if err != nil || len(data) > 20_000 || len(data) != len(contents(t, m.Name())) {
			t.Errorf("%s has %d bytes, that of testdata %d; error %v", m.Name(), len(data), len(contents(t, m.Name())), err)
		}
		if strings.HasPrefix(m.Name(), "flat") && !slices.Equal(data, contents(t, m.Name())) {
			t.Errorf("%s is another than in testdata", m.Name())
		}
	}
}
