package weaviate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of classes: weaviate://host:8080/Class.
const Scheme = "weaviate"

// defaultPort is the port of the HTTP interface where a URL names none.
const defaultPort = "8080"

var connectionParameters = []registry.Parameter{
	{Name: "grpc", Usage: "port, or host:port, of the gRPC interface, for searches and batches; without it, GraphQL and REST"},
	{Name: "tls", Usage: "true encrypts both interfaces and verifies the certificate", Default: "false"},
	{Name: "ca_file", Usage: "PEM file of certificates to trust instead of the system's"},
	{Name: "plaintext", Usage: "true allows secrets to go without TLS to another machine", Default: "false"},
	{Name: "api_key_env", Usage: "environment variable with the API key"},
	{Name: "client_secret_env", Usage: "environment variable with the secret of an OIDC client (client credentials)"},
	{Name: "client_id", Usage: "ID of the OIDC client; without it, what the server names"},
	{Name: "scopes", Usage: "OIDC scopes to ask for beside those that the server names, separated by commas"},
	{Name: "timeout", Usage: "bound of one request, 1ms to 1h", Default: DefaultTimeout.String()},
	{Name: "retries", Usage: "how often a request is repeated when the server cannot take it, 0 to 100", Default: strconv.Itoa(DefaultRetries)},
}

var placeParameters = []registry.Parameter{
	{Name: "tenant", Usage: "tenant of a class that has tenants"},
	{Name: "id", Usage: "text property with the chunk ID, or id for the UUID; without it, chunk_id where the class has it, else the UUID"},
	{Name: "text", Usage: "property with the text; without it, text or content where the class has it, else its only text property"},
}

var providerParameters = []registry.Parameter{
	{Name: "mode", Usage: "vector, bm25 or hybrid", Default: string(ModeVector)},
	{Name: "alpha", Usage: "weight of vectors in a hybrid search, 0 to 1", Default: "0.7"},
	{Name: "fusion", Usage: "how a hybrid search is fused: relative_score or ranked", Default: string(FusionRelativeScore)},
	{Name: "vectors", Usage: "names of the vectors to search, separated by commas; without it, the only one"},
	{Name: "combination", Usage: "of distances to several vectors: minimum, average, sum, manual_weights or relative_score", Default: string(CombineMinimum)},
	{Name: "weights", Usage: "weights of the vectors, separated by commas"},
	{Name: "search", Usage: "properties whose words are searched, separated by commas, with a weight as in title^2; without it, all"},
	{Name: "properties", Usage: "properties to return as metadata, separated by commas, or none; without it, all of simple type"},
	{Name: "where", Usage: "filter in Weaviate's JSON form, as {\"path\":[\"section\"],\"operator\":\"Equal\",\"valueText\":\"x\"}"},
	{Name: "autocut", Usage: "end the hits after so many jumps of the score; without it, off"},
	{Name: "max_distance", Usage: "leave out what is farther, in the metric's distance"},
	{Name: "min_certainty", Usage: "leave out what is less certain, (1 + cosine)/2, 0 to 1; cosine alone"},
}

func init() {
	registry.RegisterProvider(Scheme, registry.ProviderOpener{
		Doc: registry.Doc{
			Summary:    "objects of a Weaviate class, by vectors, words or both; vectors come with the query",
			Example:    "weaviate://localhost:8080/Pages?grpc=50051&mode=hybrid",
			Parameters: join(providerParameters, placeParameters, connectionParameters),
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CandidateProvider, error) {
			opts, paramErr := readOptions(p)
			address, class, err := location(at, p, paramErr)
			if err != nil {
				return nil, err
			}
			if opts.Mode == ModeHybrid {
				provider, err := OpenHybrid(ctx, address, class, opts)
				if err != nil {
					return nil, err // not a nil *HybridProvider in an interface
				}
				return provider, nil
			}
			provider, err := Open(ctx, address, class, opts)
			if err != nil {
				return nil, err
			}
			return provider, nil
		},
	})
	registry.RegisterGraph(Scheme, registry.GraphOpener{
		Doc: registry.Doc{
			Summary: "the edges or cross-references of a Weaviate class",
			Example: "weaviate://localhost:8080/Pages?grpc=50051",
			Parameters: join([]registry.Parameter{
				{Name: "maximum_distance", Usage: "clamp of the distances; without it, that of the corpus identity, else 10"},
				{Name: "directed", Usage: "true makes edges passable in their direction only", Default: "false"},
				{Name: "types", Usage: "types of edges to use, separated by commas; of a class of others, reference properties; without it, all"},
				{Name: "weight", Usage: "length of a reference of a class of others", Default: "1"},
			}, placeParameters, connectionParameters),
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusGraph, error) {
			opts := &GraphOptions{
				Connection: readConnection(p), Place: readPlace(p),
				MaximumDistance: p.Float("maximum_distance", 0, 1e-300, 1e300),
				Directed:        p.Bool("directed", false),
				Weight:          p.Float("weight", 1, 1e-300, 1e300),
			}
			for _, t := range list(p, "types") {
				opts.Types = append(opts.Types, mapmatched.EdgeType(t))
			}
			address, class, err := location(at, p, nil)
			if err != nil {
				return nil, err
			}
			graph, err := OpenGraph(ctx, address, class, opts)
			if err != nil {
				return nil, err // not a nil *Graph in an interface
			}
			return graph, nil
		},
	})
	registry.Default().RegisterWriter(Scheme, registry.WriterOpener{
		Doc: registry.Doc{
			Summary: "a Weaviate class to write a corpus to; it is made when it is not there",
			Example: "weaviate://localhost:8080/Pages?grpc=50051",
			Parameters: join([]registry.Parameter{
				{Name: "tenant", Usage: "tenant to write to; it is made when it is not there"},
				{Name: "tokenization", Usage: "how a new class cuts texts into words: " + strings.Join(tokenizations, ", "), Default: "word"},
				{Name: "batch_size", Usage: "objects in one request, 1 to 10000", Default: strconv.Itoa(defaultBatchSize)},
			}, connectionParameters),
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusWriter, error) {
			opts := &WriterOptions{
				Connection:   readConnection(p),
				Tenant:       p.String("tenant", ""),
				Tokenization: p.Enum("tokenization", "word", tokenizations...),
				BatchSize:    p.Int("batch_size", defaultBatchSize, 1, maxBatchSize),
			}
			address, class, err := location(at, p, nil)
			if err != nil {
				return nil, err
			}
			writer, err := OpenWriter(ctx, address, class, opts)
			if err != nil {
				return nil, err // not a nil *Writer in an interface
			}
			return writer, nil
		},
	})
}

func join(lists ...[]registry.Parameter) []registry.Parameter {
	var all []registry.Parameter
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// list reads a parameter of values separated by commas.
func list(p *registry.Params, name string) []string {
	value := p.String(name, "")
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

func readConnection(p *registry.Params) Connection {
	c := Connection{
		GRPC:         p.String("grpc", ""),
		TLS:          p.Bool("tls", false),
		CAFile:       p.String("ca_file", ""),
		Plaintext:    p.Bool("plaintext", false),
		APIKey:       p.Secret("api_key"),
		ClientSecret: p.Secret("client_secret"),
		ClientID:     p.String("client_id", ""),
		Scopes:       list(p, "scopes"),
		Timeout:      p.Duration("timeout", DefaultTimeout, time.Millisecond, maxTimeout),
		Retries:      p.Int("retries", DefaultRetries, 0, maxRetries),
	}
	if c.Retries == 0 {
		c.Retries = -1
	}
	return c
}

func readPlace(p *registry.Params) Place {
	return Place{Tenant: p.String("tenant", ""), IDProperty: p.String("id", ""), TextProperty: p.String("text", "")}
}

// readOptions reads the parameters of a provider; its error is of those that
// package registry does not read.
func readOptions(p *registry.Params) (*Options, error) {
	o := &Options{
		Connection:       readConnection(p),
		Place:            readPlace(p),
		Mode:             Mode(p.Enum("mode", string(ModeVector), string(ModeVector), string(ModeBM25), string(ModeHybrid))),
		Fusion:           Fusion(p.Enum("fusion", "", string(FusionRelativeScore), string(FusionRanked))),
		Vectors:          list(p, "vectors"),
		SearchProperties: list(p, "search"),
		Properties:       list(p, "properties"),
		Combination: Combination(p.Enum("combination", "", string(CombineMinimum), string(CombineAverage), string(CombineSum),
			string(CombineManualWeights), string(CombineRelativeScore))),
		Autocut: p.Int("autocut", 0, 0, 1<<20),
	}
	if len(o.Properties) == 1 && o.Properties[0] == "none" {
		o.Properties = []string{}
	}
	optional := func(name string, low, high float64) *float64 {
		value := p.Float(name, 0, low, high)
		if !p.Has(name) {
			return nil
		}
		return &value
	}
	o.Alpha = optional("alpha", 0, 1)
	o.MaxDistance = optional("max_distance", -1e300, 1e300)
	o.MinCertainty = optional("min_certainty", 0, 1)
	var errs []error
	for _, text := range list(p, "weights") {
		weight, err := strconv.ParseFloat(text, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter weights: %q is not a number", text))
		}
		o.Weights = append(o.Weights, weight)
	}
	if text := p.String("where", ""); text != "" {
		where, err := ParseWhere(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter where: %w", err))
		}
		o.Where = where
	}
	return o, errors.Join(errs...)
}

// location is the address and the class of a URL, or the faults of the URL.
func location(at registry.Location, p *registry.Params, paramErr error) (address, class string, err error) {
	if err := p.Err(); err != nil {
		return "", "", err
	}
	class = strings.TrimPrefix(at.Path, "/")
	switch {
	case paramErr != nil:
		err = paramErr
	case at.Host == "" || class == "":
		err = fmt.Errorf("host or class is missing; write %s://host:%s/Class", Scheme, defaultPort)
	}
	if err != nil {
		return "", "", classify("open", err)
	}
	port := at.Port
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(at.Host, port), class, nil
}
