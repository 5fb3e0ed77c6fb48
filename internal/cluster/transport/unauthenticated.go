package transport

import (
	"net"
	"net/netip"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// maxStrangers is how many connections there may be that have shown no certificate of a
// member.
const maxStrangers = 128

// Descriptors is how many files the connections of strangers and of members may take,
// about.
const Descriptors = 2 * maxStrangers

// strangers are the connections that have shown no certificate of a member, in the order
// in which they came. It is locked by Transport.mu.
type strangers struct {
	waiting []net.Conn
	evicted uint64 // how many were closed since the start
}

// hostOf returns what stands for all addresses of a host; those without one are the same.
func hostOf(addr net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(addr.String())
	return access.Machine(at.Addr())
}

// come takes a connection. If there are too many it closes the oldest of the host that
// has most, and returns true.
func (s *strangers) come(nc net.Conn) bool {
	s.waiting = append(s.waiting, nc)
	if len(s.waiting) <= maxStrangers {
		return false
	}
	have := make(map[netip.Addr]int)
	most := 0
	for _, c := range s.waiting {
		host := hostOf(c.RemoteAddr())
		have[host]++
		most = max(most, have[host])
	}
	oldest := slices.IndexFunc(s.waiting, func(c net.Conn) bool { return have[hostOf(c.RemoteAddr())] == most })
	s.waiting[oldest].Close()
	s.waiting = slices.Delete(s.waiting, oldest, oldest+1)
	s.evicted++
	return true
}

// gone forgets a connection that has ended or shown its certificate.
func (s *strangers) gone(nc net.Conn) {
	s.waiting = slices.DeleteFunc(s.waiting, func(c net.Conn) bool { return c == nc })
}

// Evicted returns how many connections were closed since the start because too many had
// shown no certificate of a member.
func (t *Transport) Evicted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evicted
}
