// Package testplugin is the plugin that the tests of package plugins run, in
// process and as a binary: every kind, over a small corpus, with words in the
// query that make it misbehave.
package testplugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// Schema is the configuration of the plugin.
const Schema = `{"type": "object", "additionalProperties": false, "properties": {
	"greeting": {"type": "string", "minLength": 2}, "dimension": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 4}}}`

type config struct {
	Greeting  string `json:"greeting"`
	Dimension int    `json:"dimension"`
}

// Plugin is the plugin.
func Plugin() plugins.Plugin {
	return plugins.Plugin{
		Name: "everything", Version: "1.10.0", Description: "every kind, for tests",
		Schema: json.RawMessage(Schema),
		Configure: func(_ context.Context, raw json.RawMessage) (plugins.Services, error) {
			c, err := plugins.DecodeConfig[config](raw)
			if err != nil {
				return plugins.Services{}, err
			}
			if c.Greeting == "refuse" {
				return plugins.Services{}, &mapmatched.Error{Op: "configure", Adapter: "everything", Kind: mapmatched.KindUnauthenticated, Err: fmt.Errorf("the key is wrong")}
			}
			g, err := mapmatched.NewGraph([]mapmatched.Edge{{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeNext}}, nil)
			return plugins.Services{Provider: &corpus{}, Reranker: Reranker{}, Graph: g, Embedder: embedder{cmp.Or(c.Dimension, 4)}, Decoder: mapmatched.Viterbi{}}, err
		},
		Kinds:      plugins.Kinds(),
		LoadCorpus: LoadCorpus,
		LoadGraph:  LoadGraph,
	}
}

// LoadCorpus makes a provider by dot product.
func LoadCorpus(_ context.Context, chunks []mapmatched.Chunk, vectors [][]float32) (mapmatched.CandidateProvider, error) {
	return &corpus{chunks, vectors}, nil
}

// LoadGraph makes a graph in memory.
func LoadGraph(_ context.Context, nodes []string, edges []mapmatched.Edge, maximumDistance float64, directed bool) (mapmatched.CorpusGraph, error) {
	return mapmatched.NewGraph(edges, &mapmatched.GraphOptions{Nodes: nodes, MaximumDistance: maximumDistance, Directed: directed})
}

// corpus scores chunks by the dot product of their vector with the query's.
type corpus struct {
	chunks  []mapmatched.Chunk
	vectors [][]float32
}

func (c *corpus) find(id string) int {
	return slices.IndexFunc(c.chunks, func(chunk mapmatched.Chunk) bool { return chunk.ID == id })
}

func (c *corpus) score(q mapmatched.Query, i int) float64 {
	var sum float64
	for k, x := range c.vectors[i] {
		if k < len(q.Vector) {
			sum += float64(x) * float64(q.Vector[k])
		}
	}
	return sum
}

// Candidates implements mapmatched.CandidateProvider.
func (c *corpus) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []mapmatched.Candidate
	for i, chunk := range c.chunks {
		if s := c.score(q, i); s > 0 {
			out = append(out, mapmatched.Candidate{ChunkID: chunk.ID, Score: s, Text: chunk.Text,
				Metadata: map[string]any{"ordinal": int64(1)<<53 + 1, "weight": 2.0}, Parts: map[string]float64{"dot": s}})
		}
	}
	slices.SortStableFunc(out, func(a, b mapmatched.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), max(limit, 0))], nil
}

// ScoreChunks implements mapmatched.ChunkScorer.
func (c *corpus) ScoreChunks(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []mapmatched.Scored
	for _, id := range ids {
		if i := c.find(id); i >= 0 {
			out = append(out, mapmatched.Scored{ChunkID: id, Score: c.score(q, i)})
		}
	}
	return out, nil
}

// Chunks implements mapmatched.ChunkFetcher.
func (c *corpus) Chunks(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []mapmatched.Chunk
	for _, id := range ids {
		if i := c.find(id); i >= 0 {
			out = append(out, c.chunks[i])
		}
	}
	return out, nil
}

// Vectors implements mapmatched.VectorFetcher.
func (c *corpus) Vectors(ctx context.Context, ids []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([][]float32, len(ids))
	for k, id := range ids {
		if i := c.find(id); i >= 0 {
			out[k] = c.vectors[i]
		}
	}
	return out, nil
}

type embedder struct{ dimension int }

// Embed implements mapmatched.Embedder.
func (e embedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, e.dimension)
		out[i][0] = float32(len(text))
	}
	return out, nil
}

// Reranker scores by the length of the texts, and misbehaves on request.
type Reranker struct{}

// Rerank implements mapmatched.Reranker. The query's text may be one of the
// words below.
func (Reranker) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	word, argument, _ := strings.Cut(q.Text, " ")
	switch word {
	case "panic":
		panic("no such " + argument)
	case "crash":
		go panic("the disk is " + argument)
		time.Sleep(time.Minute)
	case "exit":
		_, _ = fmt.Fprintln(Stderr, "cannot go on:", argument)
		os.Exit(3)
	case "wait": // until the context is done, and no longer
		<-ctx.Done()
		return nil, ctx.Err()
	case "hang": // whatever the context says
		time.Sleep(time.Hour)
	case "meet": // wait for as many calls at once
		n, err := strconv.Atoi(argument)
		if err != nil {
			return nil, err
		}
		if meeting.Add(1) == int64(n) {
			close(met)
		}
		select {
		case <-met:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "flood":
		line := strings.Repeat("x", 1<<10)
		for range 1 << 10 {
			_, _ = fmt.Fprintln(Stderr, line)
		}
		_, _ = fmt.Fprint(Stderr, strings.Repeat("y", 1<<20)+"\n")
	case "odd": // what makes go-plugin's reader of log lines panic
		_, _ = fmt.Fprintln(Stderr, `{"@message": 5, "@level": ["x"], "@timestamp": 7}`)
	case "children":
		child := exec.Command("/bin/sleep", "3600") // there is no PATH
		child.Stdout, child.Stderr = os.Stdout, Stderr
		if err := child.Start(); err != nil {
			return nil, err
		}
		return []mapmatched.Scored{{ChunkID: "pid", Score: float64(child.Process.Pid)}}, nil
	case "log":
		slog.With("shard", 7).WithGroup("store").Warn("slow answer", "took", 3*time.Second, "rows", 12)
	case "print":
		fmt.Println(argument)
	case "error":
		return nil, &mapmatched.Error{Op: "rerank", Adapter: "everything", Kind: mapmatched.Kind(argument), Err: fmt.Errorf("line one\nline two: %w", mapmatched.ErrStaleIndex)}
	case "environment":
		var out []mapmatched.Scored
		for _, v := range os.Environ() {
			out = append(out, mapmatched.Scored{ChunkID: v})
		}
		return out, nil
	case "directory":
		wd, err := os.Getwd()
		return []mapmatched.Scored{{ChunkID: wd}}, err
	case "files": // what it has open, where the system has a list
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return nil, err
		}
		var out []mapmatched.Scored
		for _, f := range files {
			if at, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil { // the list itself is closed again
				out = append(out, mapmatched.Scored{ChunkID: at})
			}
		}
		return out, nil
	case "forbid": // leave a directory that nobody may look into
		return nil, errors.Join(os.MkdirAll("a/b/c", 0o700), os.Chmod("a/b", 0), os.Chmod("a", 0o500))
	case "deadline":
		left := -1.0
		if d, ok := ctx.Deadline(); ok {
			left = time.Until(d).Seconds()
		}
		return []mapmatched.Scored{{ChunkID: "seconds", Score: left}}, nil
	case "echo":
		for _, candidate := range c {
			if n, ok := candidate.Metadata["id"].(int64); ok {
				return []mapmatched.Scored{{ChunkID: strconv.FormatInt(n, 10)}}, nil
			}
		}
	}
	out := make([]mapmatched.Scored, len(c))
	for i, candidate := range c {
		out[i] = mapmatched.Scored{ChunkID: candidate.ChunkID, Score: float64(len(candidate.Text))}
	}
	return out, nil
}

// Calls that meet.
var (
	meeting atomic.Int64
	met     = make(chan struct{})
)

// Stderr is the error output that the process was started with.
var Stderr = os.Stderr
