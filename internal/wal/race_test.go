//go:build race

package wal

// The race detector makes a sync.Pool forget at random.
func init() { raceDetector = true }
