//go:build race

package journal

func init() { raceDetector = true }
