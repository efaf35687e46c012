package plugins

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// TestProtoFile compares the .proto file with the code that was made of it, by
// the names, numbers and types of all fields and the calls of all services.
func TestProtoFile(t *testing.T) {
	b, err := os.ReadFile("proto/v1/plugin.proto")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`//[^\n]*`).ReplaceAllString(string(b), "")
	var written []string
	for _, block := range regexp.MustCompile(`(?s)(message|service) (\w+) \{(.*?)\n?\}`).FindAllStringSubmatch(text, -1) {
		for _, f := range regexp.MustCompile(`(repeated )?(map<\w+, \w+>|\w+) (\w+) = (\d+);`).FindAllStringSubmatch(block[3], -1) {
			written = append(written, fmt.Sprintf("%s.%s %s%s %s", block[2], f[3], f[1], f[2], f[4]))
		}
		for _, c := range regexp.MustCompile(`rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)`).FindAllStringSubmatch(block[3], -1) {
			written = append(written, fmt.Sprintf("%s/%s %s %s%s", block[2], c[1], c[2], c[3], c[4]))
		}
	}
	var made []string
	file := wire.File_plugin_proto
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		for k := range m.Fields().Len() {
			f := m.Fields().Get(k)
			made = append(made, fmt.Sprintf("%s.%s %s %d", m.Name(), f.Name(), fieldType(f), f.Number()))
		}
	}
	for i := range file.Services().Len() {
		s := file.Services().Get(i)
		for k := range s.Methods().Len() {
			m := s.Methods().Get(k)
			stream := ""
			if m.IsStreamingServer() {
				stream = "stream "
			}
			made = append(made, fmt.Sprintf("%s/%s %s %s%s", s.Name(), m.Name(), m.Input().Name(), stream, m.Output().Name()))
		}
	}
	slices.Sort(written)
	slices.Sort(made)
	if len(made) < 80 || !slices.Equal(written, made) {
		t.Errorf("the .proto file and the generated code differ: run .ci/proto write\nfile\n%s\ncode\n%s", strings.Join(written, "\n"), strings.Join(made, "\n"))
	}
}

func fieldType(f protoreflect.FieldDescriptor) string {
	if f.IsMap() {
		return fmt.Sprintf("map<%s, %s>", f.MapKey().Kind(), f.MapValue().Kind())
	}
	name := f.Kind().String()
	if f.Message() != nil {
		name = string(f.Message().Name())
	}
	if f.IsList() {
		return "repeated " + name
	}
	return name
}
