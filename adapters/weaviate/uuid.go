package weaviate

import (
	"github.com/google/uuid"
)

// namespace of the UUIDs of chunks: version 5 of the address of this package.
var namespace = uuid.MustParse("8a077336-8817-5c29-bf09-1ead2b1e58ea")

// UUID is the UUID (version 5, RFC 9562) of the object that a chunk is written
// to.
func UUID(chunkID string) string { return uuid.NewSHA1(namespace, []byte(chunkID)).String() }

// isUUID reports whether s is a UUID as the server writes it.
func isUUID(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.String() == s
}
