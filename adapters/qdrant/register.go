package qdrant

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of collections: qdrant://HOST:6334/COLLECTION.
const Scheme = "qdrant"

// encoderTerms is the sparse encoder that a URL can name: [TermQuery] and
// [TermDocument].
const encoderTerms = "terms"

func init() {
	registry.RegisterProvider(Scheme, registry.ProviderOpener{
		Doc: registry.Doc{
			Summary:    "a collection of a Qdrant server, over gRPC; queries of a dense vector bring theirs",
			Example:    "qdrant://localhost:6334/pages?vector=dense&limit=50",
			Parameters: slices.Concat(searchParameters, keyParameters, clientParameters, graphOnly()),
		},
		Open: openProvider,
	})
	registry.Default().RegisterWriter(Scheme, registry.WriterOpener{
		Doc: registry.Doc{
			Summary:    "a collection of a Qdrant server to write a corpus to; it is made if it is not there",
			Example:    "qdrant://localhost:6334/pages?sparse=terms",
			Parameters: slices.Concat(writeParameters, keyParameters, clientParameters),
		},
		Open: openWriter,
	})
}

var searchParameters = []registry.Parameter{
	{Name: "vector", Usage: "name of the vector to search; without it the unnamed one"},
	{Name: "sparse", Usage: "name of a sparse vector to search, alone or, with fusion, beside the other one"},
	{Name: "sparse_encoder", Usage: "what makes sparse vectors of questions: " + encoderTerms + " (BM25 over hashed words); a collection of another origin needs it said"},
	{Name: "fusion", Usage: "how the server fuses vector and sparse: rrf or, where vectors are not compared by distance, dbsf"},
	{Name: "rrf_k", Usage: "k of rrf, with ranks from 0; 61 gives the scores of rrf_v1", Default: "2"},
	{Name: "prefetch", Usage: "candidates of each vector to fuse, 1 to 10000", Default: fmt.Sprint(DefaultPrefetch)},
	{Name: "limit", Usage: "most candidates of a query, 1 to 10000; without it what the query asks for"},
	{Name: "filter", Usage: `filter in the JSON of the REST interface, such as {"must":[{"key":"lang","match":{"value":"en"}}]}`},
	{Name: "score_threshold", Usage: "leave out what scores less; negative for distances"},
	{Name: "exact", Usage: "true compares with every vector", Default: "false"},
	{Name: "hnsw_ef", Usage: "nodes of the index to keep in view; without it the server's choice"},
	{Name: "mmr", Usage: "pick candidates by maximal marginal relevance of this diversity, 0 to 1"},
	{Name: "mmr_candidates", Usage: "nearest points to pick from, 1 to 10000; without it the limit of the query"},
	{Name: "metadata", Usage: "further keys of the payload for the metadata of candidates, separated by commas"},
}

var writeParameters = []registry.Parameter{
	{Name: "vector", Usage: "name of the dense vector; without it the unnamed one"},
	{Name: "sparse", Usage: "name of a sparse vector for the words of the chunks, BM25 over hashed words; without it none"},
	{Name: "distance", Usage: "how vectors are compared: cosine, dot, euclid or manhattan", Default: string(DistanceCosine)},
	{Name: "wait", Usage: "false does not wait until what was sent can be found", Default: "true"},
	{Name: "adopt", Usage: "true gives the identity of the corpus to a collection that has none", Default: "false"},
	{Name: "batch_points", Usage: "points to send at once, 1 to 10000", Default: fmt.Sprint(DefaultBatchPoints)},
	{Name: "batch_bytes", Usage: "bytes to send at once", Default: fmt.Sprint(DefaultBatchBytes)},
}

var keyParameters = []registry.Parameter{
	{Name: "id_key", Usage: "key of the payload with the chunk ID; points without it are called by their own ID", Default: "chunk_id"},
	{Name: "text_key", Usage: "key with the text; - if there is none", Default: "text"},
	{Name: "title_key", Usage: "key with the title; - if there is none", Default: "title"},
	{Name: "section_key", Usage: "key with the section; - if there is none", Default: "section"},
	{Name: "document_key", Usage: "key with the document; - if there is none", Default: "document"},
	{Name: "ordinal_key", Usage: "key with the position in the document; - if there is none", Default: "ordinal"},
	{Name: "edges_key", Usage: "key with the edges, a list of {to, weight, type}", Default: "edges"},
}

var clientParameters = []registry.Parameter{
	{Name: "api_key_env", Usage: "environment variable that has the API key; without it none is sent"},
	{Name: "tls", Usage: "true encrypts the connection", Default: "false"},
	{Name: "ca_file", Usage: "file of certificates (PEM) to trust instead of the system's"},
	{Name: "server_name", Usage: "name in the server's certificate; without it the host"},
	{Name: "allow_plaintext_key", Usage: "true sends the API key without TLS, for everybody on the way to read", Default: "false"},
	{Name: "timeout", Usage: "of one call, with unit, 1ms to 1h", Default: DefaultTimeout.String()},
	{Name: "pool_size", Usage: "connections that take turns, 1 to 256", Default: fmt.Sprint(DefaultPoolSize)},
	{Name: "max_message_bytes", Usage: "largest request and reply", Default: fmt.Sprint(DefaultMaxMessageBytes)},
	{Name: "keepalive", Usage: "silence after which a busy connection is pinged, with unit, 10s to 24h; without it never"},
	{Name: "retries", Usage: "tries after a first one that failed as the server was away or busy, 0 to 100", Default: fmt.Sprint(DefaultRetries)},
	{Name: "max_retry_wait", Usage: "longest wait before such a try, with unit, 1ms to 1h", Default: DefaultMaxRetryWait.String()},
	{Name: "read_consistency", Usage: "replicas that must agree: all, majority, quorum or a number; without it the server's choice"},
}

// readClient reads clientParameters.
func readClient(p *registry.Params) *ClientOptions {
	o := &ClientOptions{
		APIKey: p.Secret("api_key"), AllowPlaintextKey: p.Bool("allow_plaintext_key", false),
		TLS: p.Bool("tls", false), CAFile: p.String("ca_file", ""), ServerName: p.String("server_name", ""),
		Timeout:         p.Duration("timeout", DefaultTimeout, time.Millisecond, time.Hour),
		PoolSize:        p.Int("pool_size", DefaultPoolSize, 1, 256),
		MaxMessageBytes: p.Int("max_message_bytes", DefaultMaxMessageBytes, 1024, math.MaxInt32),
		Keepalive:       p.Duration("keepalive", 0, minKeepalive, 24*time.Hour),
		Retries:         p.Int("retries", DefaultRetries, 0, 100),
		MaxRetryWait:    p.Duration("max_retry_wait", DefaultMaxRetryWait, time.Millisecond, time.Hour),
		ReadConsistency: ReadConsistency(p.String("read_consistency", "")),
	}
	if o.Retries == 0 {
		o.Retries = -1 // 0 of the options is the default
	}
	return o
}

// readKeys reads keyParameters.
func readKeys(p *registry.Params) PayloadKeys {
	return PayloadKeys{
		ChunkID: p.String("id_key", ""), Text: p.String("text_key", ""), Title: p.String("title_key", ""), Section: p.String("section_key", ""),
		Document: p.String("document_key", ""), Ordinal: p.String("ordinal_key", ""), Edges: p.String("edges_key", ""),
	}
}

// place reads server and collection from a location.
func place(at registry.Location) (address, collection string, err error) {
	collection = strings.TrimPrefix(at.Path, "/")
	if at.Host == "" || collection == "" || strings.Contains(collection, "/") {
		return "", "", invalid("open", "write %s://HOST:%s/COLLECTION, with one name behind the host", Scheme, DefaultPort)
	}
	port := at.Port
	if port == "" {
		port = DefaultPort
	}
	return net.JoinHostPort(at.Host, port), collection, nil
}

func openProvider(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CandidateProvider, error) {
	const op = "open"
	client := readClient(p)
	opts := Options{
		Vector: p.String("vector", ""), Limit: p.Int("limit", 0, 1, maxLimit), Exact: p.Bool("exact", false), HNSWEf: p.Int("hnsw_ef", 0, 1, 1<<20),
		Keys: readKeys(p),
	}
	sparse := p.String("sparse", "")
	encoderSaid := p.Enum("sparse_encoder", "", "", encoderTerms) != ""
	fusion := Fusion{
		Method: FusionMethod(p.Enum("fusion", "", "", string(FusionRRF), string(FusionDBSF))),
		K:      p.Int("rrf_k", 0, 1, math.MaxInt32), Prefetch: p.Int("prefetch", 0, 1, maxLimit),
	}
	filter := p.String("filter", "")
	if p.Has("score_threshold") {
		opts.ScoreThreshold = new(p.Float("score_threshold", 0, -math.MaxFloat32, math.MaxFloat32))
	} else {
		_ = p.Float("score_threshold", 0, -math.MaxFloat32, math.MaxFloat32)
	}
	diversity, candidates := p.Float("mmr", 0, 0, 1), p.Int("mmr_candidates", 0, 1, maxLimit)
	if p.Has("mmr") {
		opts.MMR = &MMR{Diversity: diversity, Candidates: candidates}
	}
	if keys := p.String("metadata", ""); keys != "" {
		opts.Metadata = strings.Split(keys, ",")
	}
	for _, other := range graphOnly() {
		_ = p.String(other.Name, "")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	var faults []error
	fault := func(wrong bool, text string) {
		if wrong {
			faults = append(faults, errors.New(text))
		}
	}
	fault(encoderSaid && sparse == "", "sparse_encoder has no effect without sparse=NAME, the vector that it is for")
	fault(fusion.Method != "" && sparse == "", "fusion needs a second vector: name it in sparse")
	fault(fusion.Method == "" && sparse != "" && opts.Vector != "", "vector and sparse are both given: say how to fuse them with fusion=rrf or fusion=dbsf, or leave one out")
	fault(fusion.Method == "" && (fusion.K != 0 || fusion.Prefetch != 0), "rrf_k and prefetch have no effect without fusion")
	fault(fusion.Method != "" && (opts.ScoreThreshold != nil || opts.MMR != nil), "score_threshold and mmr have no effect on fused scores: leave them out")
	fault(candidates != 0 && opts.MMR == nil, "mmr_candidates has no effect without mmr")
	if filter != "" {
		var err error
		if opts.Filter, err = ParseFilter([]byte(filter)); err != nil {
			faults = append(faults, fmt.Errorf("parameter filter: %w", errors.Unwrap(err)))
		}
	}
	if len(faults) > 0 {
		return nil, typed(op, mapmatched.KindInvalid, oneLineJoin(faults))
	}
	return connected(at, client, func(c *Client, collection string) (mapmatched.CandidateProvider, *store, error) {
		terms := opts
		terms.Vector, terms.SparseEncoder = sparse, TermQuery
		if sparse != "" && !encoderSaid {
			info, err := c.collection(ctx, op, collection)
			if err != nil {
				return nil, nil, err
			}
			if !info.hasIdentity {
				return nil, nil, invalid(op, "%s was not written by this program: say sparse_encoder=%s if its sparse vectors are of that kind", info.where, encoderTerms)
			}
		}
		if sparse != "" && fusion.Method == "" {
			provider, err := NewProvider(ctx, c, collection, &terms)
			if err != nil {
				return nil, nil, err
			}
			return provider, provider.store, nil
		}
		provider, err := NewProvider(ctx, c, collection, &opts)
		if err != nil {
			return nil, nil, err
		}
		if fusion.Method == "" {
			return provider, provider.store, nil
		}
		arm, err := NewProvider(ctx, c, collection, &terms)
		if err != nil {
			return nil, nil, err
		}
		hybrid, err := NewHybridProvider(fusion, provider, arm)
		if err != nil {
			return nil, nil, err
		}
		return hybrid, hybrid.store, nil
	})
}

func openWriter(_ context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusWriter, error) {
	client := readClient(p)
	opts := &WriterOptions{
		Vector: p.String("vector", ""), Sparse: p.String("sparse", ""), Keys: readKeys(p),
		Distance: Distance(p.Enum("distance", string(DistanceCosine), string(DistanceCosine), string(DistanceDot), string(DistanceEuclid), string(DistanceManhattan))),
		NoWait:   !p.Bool("wait", true), Adopt: p.Bool("adopt", false),
		BatchPoints: p.Int("batch_points", 0, 1, 10_000), BatchBytes: p.Int("batch_bytes", 0, 1024, math.MaxInt32),
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return connected(at, client, func(c *Client, collection string) (mapmatched.CorpusWriter, *store, error) {
		w, err := NewWriter(c, collection, opts)
		if err != nil {
			return nil, nil, err
		}
		return w, w.store, nil
	})
}

// connected opens something over a connection of its own, which is closed with
// it.
func connected[T any](at registry.Location, opts *ClientOptions, open func(c *Client, collection string) (T, *store, error)) (T, error) {
	var none T
	address, collection, err := place(at)
	if err != nil {
		return none, err
	}
	c, err := Connect(address, opts)
	if err != nil {
		return none, err
	}
	opened, s, err := open(c, collection)
	if err != nil {
		_ = c.Close() // the first error is the one to report
		return none, err
	}
	s.owned = true
	return opened, nil
}

// oneLineJoin is errors.Join in one line.
func oneLineJoin(errs []error) error {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
