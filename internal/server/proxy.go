package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation/proxyproto"
)

// A proxiedConn is a connection that a proxy passes on, with the address of the client.
type proxiedConn struct {
	*net.TCPConn
	client net.Addr
}

func (c proxiedConn) RemoteAddr() net.Addr { return c.client }

// behindProxy returns the connection of the client, if a proxy passes it on: then its header says
// whose it is. A proxy that closes the connection without a word has only looked whether
// the server is there.
func (s *Server) behindProxy(nc net.Conn, t *ListenOptions) (net.Conn, error) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok || !t.IsProxy(AddressOf(nc.RemoteAddr())) {
		return nc, nil
	}
	read := make(chan struct{})
	defer close(read)
	go func() {
		select {
		case <-read:
		case <-s.stopped:
			nc.Close()
		case <-time.After(handshakeTimeout):
			nc.Close()
		}
	}()
	switch client, err := proxyproto.Read(nc); {
	case errors.Is(err, io.EOF), err != nil && s.isClosing():
		return nil, err
	case err != nil:
		return nil, &refusal{fmt.Sprintf("its proxy does not say who it is: %v", err)}
	case client.IsValid():
		return proxiedConn{tcp, net.TCPAddrFromAddrPort(client)}, nil
	}
	return nc, nil
}
