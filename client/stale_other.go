//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package client

// A look has nothing to keep on this system.
type look struct{}

// stale reports whether the server has closed the connection. This system has no way to
// ask.
func (s *stream) stale() bool { return false }
