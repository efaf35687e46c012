package qdranttest

import (
	"context"
	"maps"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

func (s collectionsService) UpdateAliases(_ context.Context, in *qdrant.ChangeAliases) (*qdrant.CollectionOperationResponse, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	aliases := maps.Clone(s.store.aliases)
	for _, action := range in.GetActions() {
		switch a := action.GetAction().(type) {
		case *qdrant.AliasOperations_CreateAlias:
			target, alias := a.CreateAlias.GetCollectionName(), a.CreateAlias.GetAliasName()
			if s.store.collections[target] == nil {
				return nil, notFound("Collection `%s` doesn't exist!", target)
			}
			if s.store.collections[alias] != nil {
				return nil, badInput("Collection `%s` already exists!", alias)
			}
			aliases[alias] = target
		case *qdrant.AliasOperations_RenameAlias:
			from, to := a.RenameAlias.GetOldAliasName(), a.RenameAlias.GetNewAliasName()
			target, found := aliases[from]
			if !found {
				return nil, notFound("Alias %s does not exists!", from)
			}
			delete(aliases, from)
			aliases[to] = target
		case *qdrant.AliasOperations_DeleteAlias:
			delete(aliases, a.DeleteAlias.GetAliasName())
		default:
			return nil, invalidArgument("Malformed AliasOperation")
		}
	}
	s.store.aliases = aliases
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}

func (s collectionsService) ListAliases(context.Context, *qdrant.ListAliasesRequest) (*qdrant.ListAliasesResponse, error) {
	return s.aliasesOf(""), nil
}

func (s collectionsService) ListCollectionAliases(_ context.Context, in *qdrant.ListCollectionAliasesRequest) (*qdrant.ListAliasesResponse, error) {
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	return s.aliasesOf(c.name), nil
}

// aliasesOf lists the aliases of a collection, of all for "".
func (s collectionsService) aliasesOf(name string) *qdrant.ListAliasesResponse {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	out := &qdrant.ListAliasesResponse{}
	for _, alias := range slices.Sorted(maps.Keys(s.store.aliases)) {
		if target := s.store.aliases[alias]; name == "" || target == name {
			out.Aliases = append(out.Aliases, &qdrant.AliasDescription{AliasName: alias, CollectionName: target})
		}
	}
	return out
}
