// Package plugintest is the conformance suite for plugins: what PROTOCOL.md
// asks of them, as checks, for a binary in any language or a plugin in this
// process.
//
//	report := plugintest.Check(ctx, plugintest.Binary("./mmplug-reranker-overlap", nil), nil)
//	report.WriteText(os.Stdout)
//	if !report.OK() { … }
//
// A provider or graph with the capability "load" takes the suite's corpus and
// is checked for right answers by package adaptertest. Others are asked the
// queries of [Options] and checked for what holds whatever the answer is.
//
// [Measure] is the benchmark.
package plugintest
