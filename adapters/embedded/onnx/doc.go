// Package onnx embeds texts in this process with a local model: a directory in
// the form of sentence-transformers whose transformer was exported to ONNX.
//
//	all-MiniLM-L6-v2/
//	    modules.json                 Transformer, Pooling and perhaps Normalize
//	    tokenizer.json
//	    onnx/model.onnx              or model.onnx
//	    1_Pooling/config.json        mean, cls or max
//	    sentence_bert_config.json    max_seq_length; may be absent, as may
//	    tokenizer_config.json        model_max_length
//	    config.json                  max_position_embeddings
//	    config_sentence_transformers.json
//
// # Building
//
// The model is run by onnxruntime, a shared library that the program finds when
// it runs, through cgo. That part is behind the build tag onnx:
//
//	CGO_ENABLED=1 go build -tags onnx ./cmd/mmplug
//
// Without the tag, or without cgo, the package is there and [Open] says what is
// missing. The library is that of the onnxruntime releases, version
// [MinimumRuntime] or newer; see [Options] for where it is looked for.
//
// # Vectors
//
// A text is stripped of white space at its ends and cut into tokens; the
// tokens after the limit are dropped ([Embedder.Truncated] counts such texts), special tokens are set around the rest,
// and the model's states of all tokens are pooled as the directory says and
// scaled to unit length, whether the directory has a Normalize module or not.
// What the package cannot do as sentence-transformers would (other modules,
// several poolings at once, prompts, lower-casing beside the tokenizer's) is
// refused when the directory is opened.
//
// The vectors of a text are the same from call to call on one machine. They may
// differ in the last bits between processors and versions of onnxruntime.
package onnx
