//go:build race

package mapmatched

const raceDetector = true
