// Package freeport finds TCP ports for servers that run as processes.
//
// Between the search for a free port and the server's bind, another server could take the
// port, and the test would connect to the wrong server. Therefore, on Linux, the port is
// reserved until the server listens.
package freeport

import "strconv"

// A Port is a port of 127.0.0.1.
type Port struct {
	number  int
	release func()
}

// String returns the number.
func (p *Port) String() string { return strconv.Itoa(p.number) }

// Release ends the reservation. It must be called when the server listens or has failed.
func (p *Port) Release() { p.release() }
