package client

// Break gives the connection up, as an error would.
func Break(c *Conn) { c.drop(ErrDisconnected) }
