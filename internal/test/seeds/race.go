//go:build race

package seeds

// Race is whether the race detector looks on.
const Race = true
