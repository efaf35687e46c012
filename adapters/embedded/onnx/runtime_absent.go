//go:build !onnx || !cgo

package onnx

// loadRuntime says that this program cannot run models.
func loadRuntime(string) (func(*directory, int) (encoder, error), error) {
	return nil, unavailable("this program was built without it: build it with CGO_ENABLED=1 go build -tags onnx, or embed with a service such as langchaingo:ollama?model=…")
}
