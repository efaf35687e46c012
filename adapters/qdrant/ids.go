package qdrant

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"

	pb "github.com/qdrant/go-client/qdrant"
)

// Namespace is the name space of the UUIDs of chunks (RFC 9562, section 5.5).
// It is itself the UUID of version 5 of "github.com/mapmatched/mmplug" in the
// name space of DNS names.
const Namespace = "9f2686c3-abcc-52d1-8b4d-1987d6b295b1"

var namespace, _ = parseUUID(Namespace)

// PointUUID returns the UUID of the point that a chunk is stored under: the
// first 128 bits of the SHA-1 of the name space and the chunk ID, with version
// and variant set.
func PointUUID(chunkID string) string {
	h := sha1.New()
	h.Write(namespace[:])
	h.Write([]byte(chunkID))
	var u [16]byte
	copy(u[:], h.Sum(nil))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return formatUUID(u)
}

func formatUUID(u [16]byte) string {
	var s [36]byte
	hex.Encode(s[:], u[:4])
	s[8] = '-'
	hex.Encode(s[9:], u[4:6])
	s[13] = '-'
	hex.Encode(s[14:], u[6:8])
	s[18] = '-'
	hex.Encode(s[19:], u[8:10])
	s[23] = '-'
	hex.Encode(s[24:], u[10:])
	return string(s[:])
}

// parseUUID reads the form that the server writes: lower case with hyphens.
func parseUUID(s string) (u [16]byte, ok bool) {
	if len(s) != 36 {
		return u, false
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return u, false
	}
	return u, formatUUID(u) == s
}

// pointID returns the ID of the point that a chunk is stored under.
func pointID(chunkID string) *pb.PointId {
	return &pb.PointId{PointIdOptions: &pb.PointId_Uuid{Uuid: PointUUID(chunkID)}}
}

// nativeID returns the point whose own ID a chunk ID is, nil if it cannot be
// one: a number without leading zeros, or a UUID in the server's form.
func nativeID(chunkID string) *pb.PointId {
	if _, ok := parseUUID(chunkID); ok {
		return &pb.PointId{PointIdOptions: &pb.PointId_Uuid{Uuid: chunkID}}
	}
	if n, err := strconv.ParseUint(chunkID, 10, 64); err == nil && strconv.FormatUint(n, 10) == chunkID {
		return &pb.PointId{PointIdOptions: &pb.PointId_Num{Num: n}}
	}
	return nil
}

// pointIDs lists the points that may hold chunks of these IDs.
func pointIDs(chunkIDs []string) []*pb.PointId {
	ids := make([]*pb.PointId, 0, len(chunkIDs))
	for _, id := range chunkIDs {
		ids = append(ids, pointID(id))
		if native := nativeID(id); native != nil {
			ids = append(ids, native)
		}
	}
	return ids
}

// integersOf lists the chunk IDs that a payload may keep as an integer.
func integersOf(chunkIDs []string) []int64 {
	var numbers []int64
	for _, id := range chunkIDs {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && strconv.FormatInt(n, 10) == id {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// chunkID returns the chunk ID of a point: what its payload says under key, or
// else its own ID. It is "" when a server sends neither.
func chunkID(id *pb.PointId, payload map[string]*pb.Value, key string) string {
	switch v := payload[key].GetKind().(type) {
	case *pb.Value_StringValue:
		if v.StringValue != "" {
			return v.StringValue
		}
	case *pb.Value_IntegerValue:
		return strconv.FormatInt(v.IntegerValue, 10)
	}
	switch v := id.GetPointIdOptions().(type) {
	case *pb.PointId_Num:
		return strconv.FormatUint(v.Num, 10)
	case *pb.PointId_Uuid:
		return v.Uuid
	}
	return ""
}
