//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package client

// stale reports whether the server has closed the connection while it was
// silent; on this system that cannot be asked.
func (s *stream) stale() bool { return false }
