package server

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// A visitor is a client of another member, which that member describes at the beginning of the stream:
//
//	u16 (big-endian) the length of the JSON that follows; then what the client sends
//
// The member that has the client's socket ends its encryption, and finds out who it is. What the client
// may do, and how much, is decided by the leader, by the name of the identity.
type visitor struct {
	Member     uint64 `json:"member"`             // whose client it is
	Address    string `json:"address,omitempty"`  // IP and port; empty: it came through a unix socket
	Identity   string `json:"identity,omitempty"` // empty: nobody knows who it is
	Required   bool   `json:"required,omitempty"` // see access.Terms
	TokenInPut bool   `json:"token_in_put,omitempty"`
}

// maxVisitor is how long the description of a visitor may be, in bytes.
const maxVisitor = 4 << 10

// visitorTimeout is how long it may take to arrive.
const visitorTimeout = 10 * time.Second

// visitorOf describes a client of this server.
func (s *Server) visitorOf(c *netConn, t *ListenOptions, e access.Evidence) visitor {
	v := visitor{Member: s.opt.Member.ID, Required: t.Required, TokenInPut: t.TokenInPut}
	if id, known := s.access.Identify(e); known {
		v.Identity = id.Name()
	}
	if tcp, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		v.Address = tcp.AddrPort().String()
	}
	return v
}

// append appends the description.
func (v visitor) append(dst []byte) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil && len(text) > maxVisitor {
		err = fmt.Errorf("its description has %d bytes, at most %d", len(text), maxVisitor)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	return append(dst, text...), err
}

func readVisitor(r io.Reader) (v visitor, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return v, err
	}
	n := binary.BigEndian.Uint16(head[:])
	if n > maxVisitor {
		return v, fmt.Errorf("a description of %d bytes, at most %d", n, maxVisitor)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return v, err
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, err
	}
	if v.Address != "" {
		if _, err := netip.ParseAddrPort(v.Address); err != nil {
			return v, errors.New("its address is not one")
		}
	}
	return v, nil
}

// terms returns what the listener asks that the visitor came through.
func (v visitor) terms() *ListenOptions {
	return &ListenOptions{Terms: access.Terms{Required: v.Required, TokenInPut: v.TokenInPut}}
}

// addr returns the address that the visitor came from.
func (v visitor) addr() net.Addr {
	if ap, err := netip.ParseAddrPort(v.Address); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return &net.UnixAddr{Net: "unix", Name: "@"}
}

// A visitorConn is a stream with the address of the client.
type visitorConn struct {
	net.Conn
	client net.Addr
}

func (v visitorConn) RemoteAddr() net.Addr { return v.client }

// CloseWrite is that of the stream.
func (v visitorConn) CloseWrite() error {
	if under, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return under.CloseWrite()
	}
	return nil
}

// ServeVisitor serves a client that another member passes on, until its stream ends. If this member does
// not lead, the client waits until it does.
func (s *Server) ServeVisitor(member uint64, stream net.Conn) {
	moved := false
	defer func() {
		if !moved {
			stream.Close()
		}
	}()
	if !s.begin() {
		return
	}
	defer s.wg.Done()
	stream.SetReadDeadline(time.Now().Add(visitorTimeout))
	v, err := readVisitor(stream)
	if err == nil && v.Member != member {
		err = fmt.Errorf("it says that it is a client of member %d", v.Member)
	}
	if err != nil {
		s.log.Warn("a client of another member was refused", "member", member, "err", err)
		return
	}
	stream.SetReadDeadline(time.Time{})
	addr := v.addr()
	c := newNetConn(s, visitorConn{stream, addr}, nil)
	c.visitor = &v
	if s.addVisitor(c) == nil {
		defer s.removeNetConn(c)
		s.serveAtMember(c, v.terms(), access.Evidence{Address: AddressOf(addr)})
		moved = c.moved
	}
}

// addVisitor adds a connection that counts as one at another member.
func (s *Server) addVisitor(c *netConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return conversation.ErrStopped
	}
	s.mu.netConns[c] = struct{}{}
	s.mu.visitors++
	s.access.EnterGuest(s.now(), AddressOf(c.nc.RemoteAddr()))
	return nil
}

// removeVisitor notes that such a connection has ended, with mu locked.
func (s *Server) removeVisitor(client net.Addr) {
	s.mu.visitors--
	s.access.LeaveGuest(s.now(), AddressOf(client))
}
