package server

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// Limits of clients, which can be changed while the server runs. The zero value has
// none.
type Limits struct {
	// ConnectionsPerAddress is how many connections of one address may be open. A
	// further one is closed as soon as it is accepted. 0: any number. A network of
	// IPv6 with 64 bits counts as one address, for that is what a machine is given.
	// Unix sockets are not limited.
	ConnectionsPerAddress int

	// CommandsPerSecond is how many commands an identity may give in a second, on
	// all its connections; clients whom nothing identifies count as one if they have
	// the same address, and all of unix sockets count as one. After a pause there
	// may be as many at once. What is beyond is not refused: the server does not
	// read on until the time has come. 0: any number.
	CommandsPerSecond int

	// OfIdentity has CommandsPerSecond for identities, by name, that have their own.
	OfIdentity map[string]int
}

// SetLimits replaces the limits. Connections that exceed them by now stay.
func (s *Server) SetLimits(l Limits) { s.limits.set(l) }

// limits are the Limits in force and what they need to know.
type limits struct {
	mu sync.Mutex

	// Guarded by mu.
	Limits
	addresses  map[netip.Addr]*visitors // by machine; the zero Addr: of unix sockets
	identities map[string]*limiter      // by name; those that have connected

	begun     time.Time     // when now was 0
	throttled atomic.Uint64 // how often somebody had to wait
}

// visitors are the clients of an address.
type visitors struct {
	connections int
	limiter     *limiter // of those whom nothing identifies
}

var errAddressFull = errors.New("too many connections from its address")

func (l *limits) set(to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Limits = to
	for name, limiter := range l.identities {
		limiter.set(l.commandsOf(name))
	}
	for _, v := range l.addresses {
		v.limiter.set(l.CommandsPerSecond)
	}
}

// commandsOf returns how many commands a second an identity may give.
func (l *limits) commandsOf(identity string) int {
	if n, ok := l.OfIdentity[identity]; ok {
		return n
	}
	return l.CommandsPerSecond
}

// limiterOf returns the limiter of an identity, or, if id is nil, of the clients of an
// address, one of whom has entered.
func (l *limits) limiterOf(id *access.Identity, client net.Addr) conversation.Limiter {
	if id != nil {
		return l.ofIdentity(id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addresses[machine(client)].limiter
}

// ofIdentity returns the limiter of an identity, which has a name.
func (l *limits) ofIdentity(id *access.Identity) conversation.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.identities == nil {
		l.identities = make(map[string]*limiter)
	}
	name := id.Name()
	if l.identities[name] == nil {
		l.identities[name] = l.newLimiter(l.commandsOf(name))
	}
	return l.identities[name]
}

// enter counts a connection, unless its address has enough.
func (l *limits) enter(client net.Addr) error {
	addr := machine(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.addresses[addr]
	switch {
	case v == nil:
		if l.addresses == nil {
			l.addresses = make(map[netip.Addr]*visitors)
		}
		v = &visitors{limiter: l.newLimiter(l.CommandsPerSecond)}
		l.addresses[addr] = v
	case l.ConnectionsPerAddress > 0 && v.connections >= l.ConnectionsPerAddress && addr.IsValid():
		return errAddressFull
	}
	v.connections++
	return nil
}

// leave is called when a connection that has entered has ended.
func (l *limits) leave(client net.Addr) {
	addr := machine(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.addresses[addr]
	if v.connections--; v.connections == 0 {
		delete(l.addresses, addr)
	}
}

// machine returns what stands for all addresses of a client's machine; the zero Addr if
// the client has none.
func machine(client net.Addr) netip.Addr {
	addr, ok := address(client)
	if !ok || !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only for a longer one
	return network.Addr()
}

// A limiter implements conversation.Limiter. It may be switched off, which costs its
// users next to nothing. If several loops ask at the same time they may take more than
// there is; the next have to wait for that.
type limiter struct {
	limits *limits
	on     atomic.Bool
	rate   *rate.Limiter
}

func (l *limits) newLimiter(perSecond int) *limiter {
	k := &limiter{limits: l, rate: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
	k.on.Store(perSecond > 0)
	return k
}

// set says how many commands there may be in a second; 0: any number.
func (l *limiter) set(perSecond int) {
	if l.on.Store(perSecond > 0); perSecond > 0 {
		l.rate.SetLimit(rate.Limit(perSecond))
		l.rate.SetBurst(perSecond)
	}
}

// Tokens implements conversation.Limiter.
func (l *limiter) Tokens(now int64) int {
	if !l.on.Load() {
		return math.MaxInt32
	}
	return max(0, int(l.rate.TokensAt(l.limits.begun.Add(time.Duration(now)))))
}

// Take implements conversation.Limiter.
func (l *limiter) Take(now int64, n int) (at int64) {
	if !l.on.Load() {
		return now
	}
	t := l.limits.begun.Add(time.Duration(now))
	delay := l.rate.ReserveN(t, min(n, l.rate.Burst())).DelayFrom(t)
	if n == 1 && delay > 0 {
		l.limits.throttled.Add(1)
	}
	return now + int64(delay)
}
