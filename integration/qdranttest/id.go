package qdranttest

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/qdrant/go-client/qdrant"
)

// pointID is the ID of a point: a number or a UUID.
type pointID struct {
	isUUID bool
	num    uint64
	uuid   [16]byte
}

func parseID(id *qdrant.PointId) (pointID, error) {
	switch v := id.GetPointIdOptions().(type) {
	case *qdrant.PointId_Num:
		return pointID{num: v.Num}, nil
	case *qdrant.PointId_Uuid:
		uuid, ok := parseUUID(v.Uuid)
		if !ok {
			return pointID{}, invalidArgument("Unable to parse UUID: %s", v.Uuid)
		}
		return pointID{isUUID: true, uuid: uuid}, nil
	}
	return pointID{}, invalidArgument("No ID options provided")
}

func parseIDs(ids []*qdrant.PointId) ([]pointID, error) {
	parsed := make([]pointID, len(ids))
	for i, id := range ids {
		var err error
		if parsed[i], err = parseID(id); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// parseUUID reads the forms Qdrant reads: 32 hexadecimal digits, the same with
// hyphens, and that in braces or after urn:uuid:.
func parseUUID(text string) (uuid [16]byte, ok bool) {
	if inner, found := strings.CutPrefix(text, "urn:uuid:"); found {
		text = inner
	} else if len(text) == 38 && text[0] == '{' && text[37] == '}' {
		text = text[1:37]
	}
	if len(text) == 36 {
		if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return uuid, false
		}
		text = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	}
	if len(text) != 32 {
		return uuid, false
	}
	_, err := hex.Decode(uuid[:], []byte(text))
	return uuid, err == nil
}

func formatUUID(uuid [16]byte) string {
	h := hex.EncodeToString(uuid[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (id pointID) String() string {
	if id.isUUID {
		return formatUUID(id.uuid)
	}
	return strconv.FormatUint(id.num, 10)
}

func (id pointID) proto() *qdrant.PointId {
	if id.isUUID {
		return qdrant.NewIDUUID(formatUUID(id.uuid))
	}
	return qdrant.NewIDNum(id.num)
}

// compareID orders numbers before UUIDs, each ascending.
func compareID(a, b pointID) int {
	switch {
	case a.isUUID != b.isUUID && b.isUUID:
		return -1
	case a.isUUID != b.isUUID:
		return 1
	case a.isUUID:
		return bytes.Compare(a.uuid[:], b.uuid[:])
	}
	return cmp.Compare(a.num, b.num)
}
