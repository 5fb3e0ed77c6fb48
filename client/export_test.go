package client

import "time"

// SetIdle makes a connection look as if it had been silent for long.
func SetIdle(c *Conn) { c.stream.active = c.stream.now() - time.Hour }

// Break gives the connection up, as an error would.
func Break(c *Conn) { c.drop(ErrDisconnected) }
