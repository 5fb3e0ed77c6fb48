package client

// Break drops the connection, like an error.
func Break(c *Conn) { c.drop(ErrDisconnected) }
