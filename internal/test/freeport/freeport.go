// Package freeport finds TCP ports for servers that are started as processes.
//
// A port that was free a moment ago may be another server's by the time that ours binds it.
// Whoever waits for ours would then talk to the other one, and lose the connection when that
// ends. So on Linux the port is reserved until our server listens.
package freeport

import "strconv"

// A Port is a port of 127.0.0.1.
type Port struct {
	number  int
	release func()
}

// String returns the number.
func (p *Port) String() string { return strconv.Itoa(p.number) }

// Release ends the reservation. Call it when the server listens, or will not.
func (p *Port) Release() { p.release() }
