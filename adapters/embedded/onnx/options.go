package onnx

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Defaults of [Options].
const (
	DefaultMaxTokens   = 256
	DefaultThreads     = 1
	DefaultBatchTokens = 512
)

// LibraryVariable is the environment variable that names the shared library of
// onnxruntime.
const LibraryVariable = "MMPLUG_ONNXRUNTIME"

// MinimumRuntime is the oldest version of onnxruntime that works.
const MinimumRuntime = "1.24"

// Options set an [Embedder]. The zero value, and nil, are the defaults.
type Options struct {
	// ModelFile is the ONNX file, relative to the directory; "" means
	// onnx/model.onnx or else model.onnx.
	ModelFile string
	// Name is the name of the model in its identity; "" means the base name of
	// the directory. It is for people: the revision says which model it is.
	Name string
	// MaxTokens is how many tokens of a text are used, special tokens
	// included. At least 1 more than those and at most what the directory
	// allows; 0 means that or DefaultMaxTokens, whichever is less. Another
	// number than that makes vectors of another identity.
	MaxTokens int
	// Threads is how many threads share one call of the model, at least 1; 0
	// means DefaultThreads. Calls of Embed that run at the same time do not
	// wait for each other, so more is for single calls on idle processors.
	Threads int
	// BatchTokens is how many tokens, padding included, go into one call of
	// the model, at least 1; 0 means DefaultBatchTokens. A text that is longer
	// goes alone. Larger batches take more memory and are not faster.
	BatchTokens int
	// Library is the shared library of onnxruntime. "" means the file that the
	// environment variable MMPLUG_ONNXRUNTIME names or else the usual name
	// (libonnxruntime.so.1, libonnxruntime.so, libonnxruntime.dylib or
	// onnxruntime.dll) where the system looks for libraries. A process has one:
	// once it is loaded, another one is refused.
	Library string
}

// Validate reports every value that is out of range.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, f := range []struct {
		name      string
		value     int
		byDefault string
	}{
		{"MaxTokens", o.MaxTokens, fmt.Sprintf("up to %d", DefaultMaxTokens)},
		{"Threads", o.Threads, fmt.Sprint(DefaultThreads)},
		{"BatchTokens", o.BatchTokens, fmt.Sprint(DefaultBatchTokens)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%w: %s is %d, want at least 1, or 0 for %s", mapmatched.ErrInvalidConfig, f.name, f.value, f.byDefault))
		}
	}
	if o.ModelFile != "" && !filepath.IsLocal(o.ModelFile) {
		errs = append(errs, fmt.Errorf("%w: ModelFile %q leads out of the model directory; give a path inside", mapmatched.ErrInvalidConfig, o.ModelFile))
	}
	return errors.Join(errs...)
}
