//go:build faiss && cgo

package faiss

import "testing"

func BenchmarkNative(b *testing.B) { benchmarkEngine(b, EngineNative) }
