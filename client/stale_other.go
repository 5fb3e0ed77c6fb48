//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package client

// A look is empty, because the client does not query sockets on this system.
type look struct{}

// stale returns false, because this system cannot report whether the server has closed
// the connection.
func (s *stream) stale() bool { return false }
