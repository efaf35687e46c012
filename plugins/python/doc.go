// Package python holds what a plugin in Python has beside its own program: the
// helper module mmplug_plugin.py and the descriptors of the protocol that it
// reads. The directories overlap and decoder are plugins made with it, a
// reranker and a decoder; the script build packs each into one executable file,
// whose SHA-256 then covers all of it but Python and its packages.
package python

import _ "embed"

// Helper is the module mmplug_plugin.py.
//
//go:embed mmplug_plugin.py
var Helper []byte

// Descriptors is mmplug_v1.pb: the messages and services of
// plugins/proto/v1/plugin.proto as an encoded FileDescriptorProto, which every
// release of Python's protobuf reads. It lies beside the module.
//
//go:embed mmplug_v1.pb
var Descriptors []byte
