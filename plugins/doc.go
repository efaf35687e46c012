// Package plugins runs providers, rerankers, graphs, embedders and decoders as
// processes of their own, and is the kit to write such a plugin in Go. The
// protocol is gRPC behind the handshake of hashicorp/go-plugin; PROTOCOL.md has
// it for other languages, THREATS.md says what a plugin can do and cannot.
//
// # Writing one
//
//	func main() {
//		plugins.Serve(plugins.Plugin{
//			Name:     "overlap",
//			Version:  "1.0.0",
//			Services: plugins.Services{Reranker: overlap{}},
//		})
//	}
//
// A plugin that takes a configuration sets Schema and Configure. What it logs
// with [log/slog] arrives in the host's logger with its level and attributes.
//
// # Running one
//
//	host, err := plugins.Open(ctx, "overlap", &plugins.Options{Dir: "plugins.d", Kind: plugins.KindReranker})
//	defer host.Close()
//	reranker, err := host.Reranker()
//
// A plugin is the file mmplug-KIND-NAME of the plugin directory, or
// mmplug-KIND-NAME_vVERSION; PATH is never looked at. Its SHA-256 must be in
// the directory's plugins.lock ([WriteLock]) unless [Options].AllowUnlocked. A
// name with a slash is the path of a binary, whose directory is then the
// plugin directory.
//
// [Host] keeps the process running: a crash fails the calls that were on their
// way, with what the process last wrote, and the next call starts it again.
// Adapters come from [Host.Provider], [Host.Reranker], [Host.Graph],
// [Host.Embedder] and [Host.Decoder]; the registry opens them by URL as
// plugin:NAME?dir=DIR.
//
// # Managing a directory
//
// [List] says what is in it, [Inspect] asks one plugin what it is, [WriteLock]
// writes the lock file and [Verify] compares. Package plugintest has the
// conformance suite and the benchmark for any binary.
package plugins
