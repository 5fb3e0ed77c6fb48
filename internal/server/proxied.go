package server

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// A proxiedClient is a client of another member. That member describes it at the start of
// the stream:
//
//	u16 (big-endian) the length of the JSON that follows; then the client's input
//
// The member with the client's socket handles encryption and identifies the client. The
// leader decides its rights and limits by the name of the identity.
type proxiedClient struct {
	Member     uint64 `json:"member"`             // member to which the client is connected
	Address    string `json:"address,omitempty"`  // IP and port; empty for a Unix socket
	Identity   string `json:"identity,omitempty"` // empty if unknown
	Required   bool   `json:"required,omitempty"` // see access.ListenerPolicy
	TokenInPut bool   `json:"token_in_put,omitempty"`

	Term uint64 `json:"term,omitempty"` // term of the leader, as seen by the member
}

// A streamHeader is the first message of a member on a stream.
type streamHeader struct {
	proxiedClient
	Resumes   bool   `json:"resumes,omitempty"` // the client had this state at its last leader
	Note      []byte `json:"note,omitempty"`
	State     []byte `json:"state,omitempty"`
	Elapsed   int64  `json:"elapsed,omitempty"`   // ns since the state arrived
	Announces *int   `json:"announces,omitempty"` // the number of clients to resume; the stream has no client
}

// maxProxyHeader is the maximum size of a proxied client's description, in bytes. With
// its length of two bytes, it fits in proxy.head.
const maxProxyHeader = math.MaxUint16 - 2

// proxyHeaderTimeout is the maximum time until the description arrives.
const proxyHeaderTimeout = 10 * time.Second

// describe returns the description of a client for the leader.
func (a *acceptor) describe(c *socket, id *access.Identity, known bool) proxiedClient {
	v := proxiedClient{Member: a.srv.opt.Cluster.ID, Required: a.terms.Required, TokenInPut: a.terms.TokenInPut}
	if known {
		v.Identity = id.Name()
	}
	if tcp, ok := c.client.(*net.TCPAddr); ok {
		v.Address = tcp.AddrPort().String()
	}
	return v
}

// append appends the encoded description.
func (v streamHeader) append(dst []byte) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil && len(text) > maxProxyHeader {
		err = fmt.Errorf("its description has %d bytes, at most %d", len(text), maxProxyHeader)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	return append(dst, text...), err
}

func readProxied(r io.Reader) (v streamHeader, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return v, err
	}
	text := make([]byte, binary.BigEndian.Uint16(head[:]))
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

// terms returns the requirements of the client's listener.
func (v proxiedClient) terms() *access.ListenerPolicy {
	return &access.ListenerPolicy{Required: v.Required, TokenInPut: v.TokenInPut}
}

// addr returns the client's address.
func (v proxiedClient) addr() net.Addr {
	if ap, err := netip.ParseAddrPort(v.Address); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return &net.UnixAddr{Net: "unix", Name: "@"}
}

// ServeProxied serves the stream of a client that another member forwards. If this member
// is not the leader, the client is pending until it is.
func (s *Server) ServeProxied(member uint64, stream MemberStream) {
	if !s.begin() {
		stream.Close()
		return
	}
	defer s.wg.Done()
	over := s.closeUnless(stream, proxyHeaderTimeout)
	v, err := readProxied(stream)
	over()
	if err == nil && v.Member != member {
		err = fmt.Errorf("it claims to be a client of member %d", v.Member)
	}
	if err != nil {
		s.log.Warn("a client of another member was refused", "member", member, "err", err)
		stream.Close()
		return
	}
	if v.Announces != nil {
		stream.Close()
		s.arrive(member, v.Term, 0, max(0, *v.Announces))
		return
	}
	if _, _, err := s.startLoops(nil); err != nil { // as Serve reports
		stream.Close()
		return
	}
	c := &socket{client: v.addr(), proxied: new(v.proxiedClient), fd: streamSocket{stream}}
	s.prepare(c)
	if v.Resumes {
		c.proxy.last = &suspended{v.Note, v.State, s.now() - max(0, v.Elapsed)}
	}
	if s.handOut(c) != nil {
		c.fd.Close()
	}
}

// stream returns the stream of a proxied client.
func (s *socket) stream() MemberStream { return s.fd.(streamSocket).Stream.(MemberStream) }

// identify admits a client with the name of an identity, or "".
func (s *Server) identify(c *socket, v *proxiedClient, identity string) error {
	id, known := s.access.ByName(identity)
	if !known && identity != "" {
		return &rejection{"the leader has no such identity: " + identity}
	}
	s.admit(&c.Conversation, v.terms(), id, known)
	return nil
}

// askedMember returns the member to which a client is connected.
func (s *Server) askedMember(asker conversation.Owner) uint64 {
	if c, ok := asker.(*socket); ok && c.proxied != nil {
		return c.proxied.Member
	}
	return s.opt.Cluster.ID
}
