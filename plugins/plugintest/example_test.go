package plugintest_test

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

// The suite for a plugin of this process; for a binary the target is
// plugintest.Binary(path, nil).
func ExampleCheck() {
	target := plugintest.InMemory(plugins.Plugin{Name: "viterbi", Version: "1.0.0", Services: plugins.Services{Decoder: mapmatched.Viterbi{}}}, nil)
	report := plugintest.Check(context.Background(), target, nil)
	for _, r := range report.Results {
		if r.Group == "decoder" {
			fmt.Printf("%s: %s\n", r.Status, r.Check)
		}
	}
	fmt.Println(report.OK())
	// Output:
	// ok: nothing to decode
	// ok: same answers as the built-in decoder
	// ok: context done before
	// true
}
