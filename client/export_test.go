package client

import "time"

// SetIdle makes a connection look as if it had been silent for long.
func SetIdle(c *Conn) { c.stream.idle = time.Time{} }
