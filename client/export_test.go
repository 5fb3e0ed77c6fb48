package client

// Break drops the connection, as an error does.
func Break(c *Conn) { c.drop(ErrDisconnected) }
