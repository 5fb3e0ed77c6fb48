package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation/proxyproto"
)

// clientOf returns the address of the client of a new connection. If a proxy forwards the
// connection, its header contains the address. A proxy that closes the connection at once
// was only checking that the server is up.
func (a *acceptor) clientOf(nc net.Conn) (net.Addr, error) {
	if !a.terms.IsProxy(AddressOf(nc.RemoteAddr())) {
		return nc.RemoteAddr(), nil
	}
	defer a.srv.closeUnless(nc, handshakeTimeout)()
	switch client, err := proxyproto.Read(nc); {
	case errors.Is(err, io.EOF):
		return nil, err
	case err != nil:
		return nil, &rejection{fmt.Sprintf("the proxy sent no valid header: %v", err)}
	case client.IsValid():
		return net.TCPAddrFromAddrPort(client), nil
	}
	return nc.RemoteAddr(), nil
}

// closeUnless closes c after d, or when the server stops. The returned function cancels
// this.
func (s *Server) closeUnless(c io.Closer, d time.Duration) (over func()) {
	ctx, cancel := context.WithTimeout(s.running, d)
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() {
		stop()
		cancel()
	}
}
