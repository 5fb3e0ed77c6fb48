package transport

import (
	"net"
	"net/netip"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// maxUnauthenticated is the maximum number of connections that have not presented a
// member's certificate.
const maxUnauthenticated = 128

// Descriptors is the approximate maximum number of files that the connections of members
// need.
const Descriptors = 2 * maxUnauthenticated

// unauthenticated contains the connections that have not presented a member's
// certificate, in the order of arrival. Transport.mu guards it.
type unauthenticated struct {
	waiting []net.Conn
	evicted uint64 // connections closed since the start
}

// hostOf returns a value that is the same for all addresses of a host, and for all
// connections without an address.
func hostOf(addr net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(addr.String())
	return access.Machine(at.Addr())
}

// add adds a connection. If there are too many, it closes the oldest connection of the
// host with the most connections and returns true.
func (s *unauthenticated) add(nc net.Conn) bool {
	s.waiting = append(s.waiting, nc)
	if len(s.waiting) <= maxUnauthenticated {
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

// remove removes a connection that was closed, or that has presented its certificate.
func (s *unauthenticated) remove(nc net.Conn) {
	s.waiting = slices.DeleteFunc(s.waiting, func(c net.Conn) bool { return c == nc })
}

// Evicted returns the number of connections that were closed since the start because too
// many had not presented a member's certificate.
func (t *Transport) Evicted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending.evicted
}
