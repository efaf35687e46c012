//go:build onnx && cgo

package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// loaded is the shared library of this process. It stays until the end.
var loaded struct {
	sync.Mutex
	library string // what it was loaded as, "" before
}

// loadRuntime loads the library, once, and returns what makes encoders then.
func loadRuntime(library string) (func(*directory, int) (encoder, error), error) {
	loaded.Lock()
	defer loaded.Unlock()
	if library == "" {
		library = os.Getenv(LibraryVariable)
	}
	names := usualNames()
	if library != "" {
		if err := checkLibrary(library); err != nil {
			return nil, err
		}
		names = []string{library}
	}
	switch {
	case loaded.library == "":
	case library == "" || sameFile(library, loaded.library):
		return newSession, nil
	default:
		return nil, unavailable("%s is loaded already, and a process has one: leave out %s", loaded.library, library)
	}
	var err error
	for _, name := range names {
		ort.SetSharedLibraryPath(name)
		if err = ort.InitializeEnvironment(ort.WithLogLevelError()); err == nil {
			loaded.library = name
			return newSession, ort.DisableTelemetry()
		}
		if strings.Contains(err.Error(), "ORT API base") {
			return nil, unavailable("the library %s is of an onnxruntime older than %s: get that or a newer one", name, MinimumRuntime)
		}
	}
	if library != "" {
		return nil, unavailable("the library %s cannot be loaded: %w", library, cause(err))
	}
	return nil, unavailable("there is no library %s where the system looks for libraries: get onnxruntime %s or newer and name its library in the environment variable %s",
		strings.Join(names, " or "), MinimumRuntime, LibraryVariable)
}

// checkLibrary says that a library is missing in clearer words than the loader.
func checkLibrary(library string) error {
	info, err := os.Stat(library)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the onnxruntime library %s is missing: get onnxruntime %s or newer and name its library in the environment variable %s: %w",
			library, MinimumRuntime, LibraryVariable, fs.ErrNotExist)
	case err != nil:
		return unavailable("the library: %w", err)
	case info.IsDir():
		return unavailable("%s is a directory: name the library in it", library)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y) || filepath.Clean(a) == filepath.Clean(b)
}

func usualNames() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"onnxruntime.dll"}
	case "darwin":
		return []string{"libonnxruntime.dylib"}
	}
	return []string{"libonnxruntime.so.1", "libonnxruntime.so"}
}

// cause is the innermost error that a message of the binding ends in.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
