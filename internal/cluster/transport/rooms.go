package transport

import (
	"context"
	"net"
	"net/netip"
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
	at, _ := netip.ParseAddrPort(from.String()) // what has no address shares its rooms
	host := access.Machine(at.Addr())
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
