package python

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

var update = flag.Bool("update", false, "write mmplug_v1.pb anew")

// The Python plugins speak the protocol that the Go code speaks.
func TestDescriptors(t *testing.T) {
	file := protodesc.ToFileDescriptorProto(wire.File_plugin_proto)
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("mmplug_v1.pb", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Descriptors, want) {
		t.Error("mmplug_v1.pb is not of plugin.proto: run go test ./plugins/python -run TestDescriptors -update")
	}
}
