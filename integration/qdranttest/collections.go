package qdranttest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// collectionsService is the service qdrant.Collections.
type collectionsService struct {
	qdrant.UnimplementedCollectionsServer
	store *store
}

func (s collectionsService) Create(_ context.Context, in *qdrant.CreateCollection) (*qdrant.CollectionOperationResponse, error) {
	name := in.GetCollectionName()
	if err := checkName("collection_name", name); err != nil {
		return nil, err
	}
	if i := strings.IndexAny(name, "<>:\"/\\|?*\x00\x1F"); i >= 0 {
		return nil, invalidField("collection_name", "collection name cannot contain %s char", strconv.Quote(name[i:i+1]))
	}
	vectors, err := parseVectorSet(in)
	if err != nil {
		return nil, err
	}
	if err := checkPayload(in.GetMetadata()); err != nil {
		return nil, err
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.collections[name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Wrong input: Collection `%s` already exists!", name)
	}
	if s.store.aliases[name] != "" {
		return nil, badInput("Can't create collection with name %s. Alias with the same name already exists", name)
	}
	s.store.collections[name] = &collection{
		name:    name,
		delay:   s.store.writeDelay,
		vectors: vectors,
		config:  proto.CloneOf(in),
		points:  map[pointID]*point{},
		indexes: map[string]*payloadIndex{},
	}
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}

// parseVectorSet reads which vectors a new collection has.
func parseVectorSet(in *qdrant.CreateCollection) (vectorSet, error) {
	set := vectorSet{dense: map[string]denseField{}, sparse: map[string]sparseField{}}
	add := func(field, name string, p *qdrant.VectorParams) error {
		if p.GetSize() < 1 || p.GetSize() > 65536 {
			return invalidField(field+".size", "value %d invalid, must be from 1 to 65536", p.GetSize())
		}
		switch d := p.GetDistance(); d {
		case qdrant.Distance_Cosine, qdrant.Distance_Dot, qdrant.Distance_Euclid, qdrant.Distance_Manhattan:
		case qdrant.Distance_UnknownDistance:
			return invalidArgument("Malformed distance parameter: UnknownDistance")
		default:
			return invalidArgument("Malformed distance parameter, unexpected value: %d", d)
		}
		set.dense[name] = denseField{size: int(p.GetSize()), distance: p.GetDistance(), multi: p.GetMultivectorConfig() != nil}
		return nil
	}
	switch c := in.GetVectorsConfig().GetConfig().(type) {
	case *qdrant.VectorsConfig_Params:
		if err := add("vectors_config.config", "", c.Params); err != nil {
			return set, err
		}
	case *qdrant.VectorsConfig_ParamsMap:
		for _, name := range slices.Sorted(maps.Keys(c.ParamsMap.GetMap())) {
			if err := add("vectors_config.config.map[]", name, c.ParamsMap.GetMap()[name]); err != nil {
				return set, err
			}
		}
	}
	for name, p := range in.GetSparseVectorsConfig().GetMap() {
		set.sparse[name] = sparseField{idf: p.GetModifier() == qdrant.Modifier_Idf}
	}
	return set, nil
}

func (s collectionsService) Get(_ context.Context, in *qdrant.GetCollectionInfoRequest) (*qdrant.GetCollectionInfoResponse, error) {
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	return &qdrant.GetCollectionInfoResponse{Result: c.info()}, nil
}

func (s collectionsService) List(context.Context, *qdrant.ListCollectionsRequest) (*qdrant.ListCollectionsResponse, error) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	out := &qdrant.ListCollectionsResponse{}
	for _, name := range slices.Sorted(maps.Keys(s.store.collections)) {
		out.Collections = append(out.Collections, &qdrant.CollectionDescription{Name: name})
	}
	return out, nil
}

func (s collectionsService) CollectionExists(_ context.Context, in *qdrant.CollectionExistsRequest) (*qdrant.CollectionExistsResponse, error) {
	if err := checkName("collection_name", in.GetCollectionName()); err != nil {
		return nil, err
	}
	_, err := s.store.find(in.GetCollectionName())
	return &qdrant.CollectionExistsResponse{Result: &qdrant.CollectionExists{Exists: err == nil}}, nil
}

func (s collectionsService) Delete(_ context.Context, in *qdrant.DeleteCollection) (*qdrant.CollectionOperationResponse, error) {
	name := in.GetCollectionName()
	if err := checkName("collection_name", name); err != nil {
		return nil, err
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	_, found := s.store.collections[name]
	delete(s.store.collections, name)
	maps.DeleteFunc(s.store.aliases, func(_, target string) bool { return target == name })
	return &qdrant.CollectionOperationResponse{Result: found}, nil
}

func (s collectionsService) Update(_ context.Context, in *qdrant.UpdateCollection) (*qdrant.CollectionOperationResponse, error) {
	if err := checkPayload(in.GetMetadata()); err != nil {
		return nil, err
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	config := proto.CloneOf(c.config)
	config.Metadata = mergePayload(config.GetMetadata(), clonePayload(in.GetMetadata()))
	if in.GetStrictModeConfig() != nil {
		config.StrictModeConfig = proto.CloneOf(in.GetStrictModeConfig())
	}
	c.config = config
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}
