package qdranttest

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// readMethods are the methods a read-only key may call; every other one
// changes something.
var readMethods = map[string]bool{
	"Collections/Get":                   true,
	"Collections/List":                  true,
	"Collections/ListCollectionAliases": true,
	"Collections/ListAliases":           true,
	"Collections/CollectionClusterInfo": true,
	"Collections/CollectionExists":      true,
	"Collections/ListShardKeys":         true,
	"Points/Get":                        true,
	"Points/Search":                     true,
	"Points/SearchBatch":                true,
	"Points/SearchGroups":               true,
	"Points/Scroll":                     true,
	"Points/Recommend":                  true,
	"Points/RecommendBatch":             true,
	"Points/RecommendGroups":            true,
	"Points/Discover":                   true,
	"Points/DiscoverBatch":              true,
	"Points/Count":                      true,
	"Points/Query":                      true,
	"Points/QueryBatch":                 true,
	"Points/QueryGroups":                true,
	"Points/Facet":                      true,
	"Points/SearchMatrixPairs":          true,
	"Points/SearchMatrixOffsets":        true,
	"Snapshots/List":                    true,
	"Snapshots/ListFull":                true,
}

func (s *Server) authorize(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := methodName(info.FullMethod)
	if s.opts.APIKey == "" || method == "Qdrant/HealthCheck" || method == "grpc.health.v1.Health/Check" {
		return next(ctx, req)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	key, found := "", false
	if values := md.Get("api-key"); len(values) > 0 {
		key, found = values[0], true
	} else if values := md.Get("authorization"); len(values) > 0 {
		key, found = strings.CutPrefix(values[0], "Bearer ")
	}
	switch {
	case !found:
		return nil, status.Error(codes.Unauthenticated, "Must provide an API key or an Authorization bearer token")
	case key == s.opts.APIKey:
	case s.opts.ReadOnlyAPIKey != "" && key == s.opts.ReadOnlyAPIKey:
		if !readMethods[method] {
			return nil, status.Error(codes.PermissionDenied, "Forbidden: Global manage access is required")
		}
	default:
		return nil, status.Error(codes.Unauthenticated, "Invalid API key or JWT")
	}
	return next(ctx, req)
}
