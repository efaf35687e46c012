//go:build onnx && cgo

package onnx

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// session is a model in onnxruntime.
type session struct {
	*ort.DynamicAdvancedSession
	types bool // the model wants token types
}

// The inputs and outputs that exports have.
const (
	inputIDs   = "input_ids"
	inputMask  = "attention_mask"
	inputTypes = "token_type_ids"
)

var outputNames = []string{"last_hidden_state", "token_embeddings"}

func newSession(d *directory, threads int) (encoder, error) {
	s := &session{}
	output, err := s.inspect(filepath.Join(d.dir, filepath.FromSlash(d.modelFile)), d.dimension)
	if err != nil {
		return nil, err
	}
	options, err := newOptions(threads)
	if err != nil {
		return nil, err
	}
	defer func() { _ = options.Destroy() }()
	inputs := []string{inputIDs, inputMask}
	if s.types {
		inputs = append(inputs, inputTypes)
	}
	s.DynamicAdvancedSession, err = ort.NewDynamicAdvancedSessionWithONNXData(d.model, inputs, []string{output}, options)
	if err != nil {
		return nil, loadFault(err)
	}
	return s, nil
}

func newOptions(threads int) (*ort.SessionOptions, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		options.SetIntraOpNumThreads(threads),
		options.SetInterOpNumThreads(1),
		options.SetLogSeverityLevel(ort.LoggingLevelError),
	); err != nil {
		_ = options.Destroy() // nothing else can go wrong with it
		return nil, err
	}
	return options, nil
}

// inspect checks the inputs and outputs of a model and returns the output that
// has the states of the tokens.
func (s *session) inspect(file string, dimension int) (output string, err error) {
	options, err := newOptions(1)
	if err != nil {
		return "", err
	}
	defer func() { _ = options.Destroy() }()
	if err := options.SetGraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll); err != nil { // quicker
		return "", err
	}
	inputs, outputs, err := ort.GetInputOutputInfoWithOptions(file, options)
	if err != nil {
		return "", loadFault(err)
	}
	has := map[string]bool{}
	for _, in := range inputs {
		switch in.Name {
		case inputIDs, inputMask, inputTypes:
		default:
			return "", fmt.Errorf("the model wants the input %q, which is not known; the inputs are %s", in.Name, list(inputs))
		}
		if in.DataType != ort.TensorElementDataTypeInt64 || len(in.Dimensions) != 2 || in.Dimensions[0] > 0 || in.Dimensions[1] > 0 {
			return "", fmt.Errorf("the input %s: want int64 of shape [-1 -1], any number of texts and tokens; export the model with dynamic axes", describe(in))
		}
		has[in.Name] = true
	}
	if !has[inputIDs] || !has[inputMask] {
		return "", fmt.Errorf("the model lacks one of the inputs %s and %s; the inputs are %s", inputIDs, inputMask, list(inputs))
	}
	s.types = has[inputTypes]
	found, err := tokenStates(outputs)
	if err != nil {
		return "", err
	}
	if n := found.Dimensions[2]; n > 0 && n != int64(dimension) {
		return "", fmt.Errorf("the output %s has dimension %d and the pooling configuration says %d: take both from one model", describe(found), n, dimension)
	}
	return found.Name, nil
}

// tokenStates finds the output with the states of the tokens: the one with a
// usual name, or the only one of three dimensions.
func tokenStates(outputs []ort.InputOutputInfo) (ort.InputOutputInfo, error) {
	var fit []ort.InputOutputInfo
	for _, out := range outputs {
		if len(out.Dimensions) != 3 || out.DataType != ort.TensorElementDataTypeFloat {
			continue
		}
		for _, name := range outputNames {
			if out.Name == name {
				return out, nil
			}
		}
		fit = append(fit, out)
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	return ort.InputOutputInfo{}, fmt.Errorf("the model has no output %s and not just one other of float32 and three dimensions; the outputs are %s: export the transformer alone",
		strings.Join(outputNames, " or "), list(outputs))
}

func list(infos []ort.InputOutputInfo) string {
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = describe(info)
	}
	return strings.Join(names, ", ")
}

func describe(info ort.InputOutputInfo) string {
	kind := strings.ToLower(strings.TrimPrefix(info.DataType.String(), "ONNX_TENSOR_ELEMENT_DATA_TYPE_"))
	return fmt.Sprintf("%q (%s, %v)", info.Name, kind, []int64(info.Dimensions))
}

func loadFault(err error) error {
	return fmt.Errorf("%w or not a model that this onnxruntime can load: %w", errDamaged, cause(err))
}

// encode implements encoder.
func (s *session) encode(ctx context.Context, ids, mask []int64, rows, width int) (states []float32, err error) {
	shape := ort.NewShape(int64(rows), int64(width))
	columns := [][]int64{ids, mask}
	if s.types {
		columns = append(columns, make([]int64, len(ids))) // all of type 0
	}
	var inputs []ort.Value
	outputs := []ort.Value{nil}
	defer func() {
		for _, v := range append(inputs, outputs...) {
			if v != nil {
				_ = v.Destroy() // an error would mean that there is nothing to free
			}
		}
	}()
	for _, column := range columns {
		tensor, err := ort.NewTensor(shape, column)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, tensor)
	}
	options, stop, err := stopWith(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := s.RunWithOptions(inputs, outputs, options); err != nil {
		return nil, fmt.Errorf("the model failed on %d texts of up to %d tokens: %w", rows, width, cause(err))
	}
	tensor, ok := outputs[0].(*ort.Tensor[float32])
	if !ok {
		return nil, fmt.Errorf("the model returned a %T, want float32", outputs[0])
	}
	return tensor.GetData(), nil // in memory of Go, which outlives the tensor
}

// stopWith returns options of a run that ends when ctx is done, and what frees
// them.
func stopWith(ctx context.Context) (options *ort.RunOptions, free func(), err error) {
	if options, err = ort.NewRunOptions(); err != nil {
		return nil, nil, err
	}
	terminated := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(terminated)
		_ = options.Terminate() // the run then goes on to its end
	})
	return options, func() {
		if !unhook() {
			<-terminated
		}
		_ = options.Destroy() // they are not used any more
	}, nil
}

// close implements encoder.
func (s *session) close() error { return s.Destroy() }
