//go:build (amd64 || arm64) && !purego

package engine

// prefetch asks the processor to load a record that will be needed soon.
//
//go:noescape
func prefetch(j *job)
