package transport

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// How many handshakes may be under way, in all and with one host, so that one that is silent does not keep others out. Those
// who come meanwhile wait.
const (
	maxHandshakes     = 64
	maxHandshakesEach = 16
)

// rooms has one for each handshake under way.
type rooms struct {
	all chan struct{}

	mu    sync.Mutex
	hosts map[netip.Addr]*hostRooms // that somebody is in, or waits for
}

// hostRooms are those of one host.
type hostRooms struct {
	rooms chan struct{}
	users int // who are in one or wait for one; with rooms.mu
}

func newRooms() *rooms {
	return &rooms{all: make(chan struct{}, maxHandshakes), hosts: make(map[netip.Addr]*hostRooms)}
}

// enter waits for a room, until ctx is done, and returns what leaves it.
func (r *rooms) enter(ctx context.Context, from net.Addr) (leave func(), err error) {
	host := hostOf(from)
	own := r.join(host)
	for i, of := range []chan struct{}{own.rooms, r.all} {
		select {
		case of <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.rooms
			}
			r.part(host, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-r.all
		<-own.rooms
		r.part(host, own)
	}, nil
}

// hostOf returns what stands for all addresses of a host; those without one are the same.
func hostOf(addr net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(addr.String())
	return access.Machine(at.Addr())
}

func (r *rooms) join(host netip.Addr) *hostRooms {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hosts[host]
	if h == nil {
		h = &hostRooms{rooms: make(chan struct{}, maxHandshakesEach)}
		r.hosts[host] = h
	}
	h.users++
	return h
}

func (r *rooms) part(host netip.Addr, h *hostRooms) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(r.hosts, host)
	}
}

// maxStrangers is how many connections there may be that have shown no certificate of a member.
const maxStrangers = 128

// Descriptors is how many files the connections of strangers and of members may take, about.
const Descriptors = 2 * maxStrangers

// strangers are the connections that have shown no certificate of a member, in the order in which they came. It is locked by Transport.mu.
type strangers struct {
	waiting []net.Conn
	evicted uint64 // how many were closed since the start
}

// come takes a connection. If there are too many it closes the oldest of the host that has most, and returns true.
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

// Evicted returns how many connections were closed since the start because too many had shown no certificate of a member.
func (t *Transport) Evicted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evicted
}
