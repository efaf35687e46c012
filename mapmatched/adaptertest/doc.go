// Package adaptertest holds the conformance suites that every provider and
// graph passes: what the interfaces of package mapmatched promise, as checks.
//
// An adapter's test hands the suite a way to make a store:
//
//	func TestConformance(t *testing.T) {
//		adaptertest.Provider(t, adaptertest.ProviderHarness{
//			New: func(c adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
//				return fill(t.TempDir(), c.Chunks, c.Vectors)
//			},
//		})
//	}
//
// Each check gets a store of its own, so that none depends on what another one
// asked. Optional capabilities are found by type assertion; the checks of one
// that is absent are skipped. [CheckProvider] and [CheckGraph] run the same
// checks outside of a test and return a report.
//
// # What the suites settle
//
//   - A limit of zero or less asks for nothing: no candidates, with or without
//     an error.
//   - A query that is answered although its context is done part of the way is
//     answered in full; a result in part is an error.
//   - Nothing that was returned changes later, and nothing that a caller does
//     to it reaches the store.
//   - After Close every call fails with mapmatched.ErrClosed, calls already
//     running end with their answer or with that error, and Close again is nil.
//   - A radius that is NaN or negative reaches nothing: no neighbors, with or
//     without an error. An infinite one is the maximum distance.
package adaptertest
