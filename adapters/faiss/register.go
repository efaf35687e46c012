package faiss

import (
	"context"
	"errors"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of indexes: faiss:/path/index.faiss.
const Scheme = "faiss"

func init() {
	registry.RegisterProvider(Scheme, registry.ProviderOpener{
		Doc: registry.Doc{
			Summary: "vectors of a FAISS index file; queries bring their vector",
			Example: "faiss:/path/index.faiss?ids=/path/ids.jsonl&mode=similarity",
			Parameters: []registry.Parameter{
				{Name: "ids", Usage: "file with the chunk of each vector, JSON Lines of strings or {id, text, metadata, faiss_id}; required"},
				{Name: "mode", Usage: "similarity (inner product) or distance (L2): refuse an index of the other; without it, what the index is"},
				{Name: "cosine", Usage: "true checks that the vectors have length 1 and scales queries to it", Default: "false"},
				{Name: "vectors", Usage: "true refuses an index that cannot give its vectors, which edges need", Default: "false"},
				{Name: "model", Usage: "name of the embedding model, for messages"},
				{Name: "engine", Usage: "go, native (libfaiss, needs the build tag faiss; a damaged file may end the program) or auto, which is go where it reads the type and else native", Default: string(EngineAuto)},
				{Name: "nprobe", Usage: "lists of an IVF index to look into; without it, what the file says"},
				{Name: "ef_search", Usage: "nodes of an HNSW index to keep in view; without it, what the file says"},
				{Name: "exact", Usage: "true compares with every vector of an IVF or HNSW index", Default: "false"},
				{Name: "threads", Usage: "OpenMP threads of one search of libfaiss, 1 to 1024", Default: "1"},
			},
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CandidateProvider, error) {
			ids := p.String("ids", "")
			opts := &Options{
				Mode:    Mode(p.Enum("mode", "", string(ModeSimilarity), string(ModeDistance))),
				Cosine:  p.Bool("cosine", false),
				Vectors: p.Bool("vectors", false),
				Model:   p.String("model", ""),
				IndexOptions: IndexOptions{
					Engine:   Engine(p.Enum("engine", string(EngineAuto), string(EngineAuto), string(EngineGo), string(EngineNative))),
					Nprobe:   p.Int("nprobe", 0, 1, 1<<30),
					EfSearch: p.Int("ef_search", 0, 1, 1<<30),
					Exact:    p.Bool("exact", false),
					Threads:  p.Int("threads", 1, 1, maxThreads),
				},
			}
			if err := p.Err(); err != nil {
				return nil, err
			}
			path, err := at.File()
			if err == nil && ids == "" {
				err = errors.New("the parameter ids is missing: write ids=FILE with the chunk of each vector")
			}
			if err != nil {
				return nil, classify("open", err)
			}
			provider, err := Open(ctx, path, ids, opts)
			if err != nil {
				return nil, err // not a nil *Provider in an interface
			}
			return provider, nil
		},
	})
}
