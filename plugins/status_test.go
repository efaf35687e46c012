package plugins

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// TestMessageLimit names the limit that was met, and who has to do something.
// The texts are those of gRPC in Go and in C.
func TestMessageLimit(t *testing.T) {
	for text, want := range map[string]string{
		"grpc: received message larger than max (5000000 vs. 4194304)":              "limit of 4194304 bytes that the plugin has set itself, it has to allow 67108864 (64 MiB)",
		"grpc: received message after decompression larger than max 4194304":        "limit of 4194304 bytes that the plugin has set itself",
		"SERVER: Received message larger than max (6000011 vs. 4194304)":            "limit of 4194304 bytes that the plugin has set itself",
		"trying to send message larger than max (5000000 vs. 1000)":                 "limit of 1000 bytes that the plugin has set itself",
		"grpc: received message larger than max (68157440 vs. 67108864)":            "limit of 64 MiB, ask for less at once",
		"trying to send message larger than max (68157440 vs. 67108864)":            "limit of 64 MiB, ask for less at once",
		"grpc: received message after decompression larger than max 67108864 bytes": "limit of 64 MiB, ask for less at once",
	} {
		kind, byPlugin, err := fromStatus(status.Error(codes.ResourceExhausted, text))
		if kind != mapmatched.KindInvalid || !byPlugin || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v of kind %q, want %q", text, err, kind, want)
		}
	}
	if kind, _, err := fromStatus(status.Error(codes.ResourceExhausted, "too many requests")); kind != mapmatched.KindUnavailable || err.Error() != "too many requests" {
		t.Errorf("error %v of kind %q", err, kind)
	}
}
