//go:build !race

package seeds

// Race reports whether the race detector is enabled.
const Race = false
