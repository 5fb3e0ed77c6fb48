package server

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

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
	// all its connections. Clients that nothing identifies count as one if they have
	// the same address, and all of unix sockets count as one. After a second of
	// silence as many may come at once. What is beyond is not refused: the server
	// does not read on until the time has come. 0: any number.
	CommandsPerSecond int

	// OfIdentity has CommandsPerSecond for identities, by name, that have their own.
	OfIdentity map[string]int
}

// SetLimits replaces the limits. Connections that exceed them by now stay.
func (s *Server) SetLimits(l Limits) { s.limits.set(s.now(), l) }

// limits are the Limits in force and what they need to know.
type limits struct {
	mu sync.Mutex

	// Guarded by mu.
	Limits
	addresses  map[netip.Addr]*visitors // by machine; the zero Addr: of unix sockets
	departed   []departure              // of addresses without connections, in their order
	identities map[string]*limiter      // by name; those that have connected

	throttled atomic.Uint64 // how often a client had to wait
}

// visitors are the clients of an address.
type visitors struct {
	connections int
	limiter     *limiter // of those that nothing identifies
	keepUntil   int64    // as the last departure says
}

// A departure is that of the last client of an address. Its limiter is kept until it is
// as good as a new one: otherwise a client would get new tokens by connecting again.
type departure struct {
	machine   netip.Addr
	keepUntil int64 // ns
}

var errAddressFull = errors.New("too many connections from its address")

func (l *limits) set(now int64, to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Limits = to
	for name, limiter := range l.identities {
		limiter.set(now, l.commandsOf(name))
	}
	for _, v := range l.addresses {
		v.limiter.set(now, l.CommandsPerSecond)
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
// address, of which one has entered.
func (l *limits) limiterOf(id *access.Identity, client net.Addr) conversation.Limiter {
	if id != nil {
		return l.ofIdentity(id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addresses[Machine(client)].limiter
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
func (l *limits) enter(now int64, client net.Addr) error {
	addr := Machine(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
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
func (l *limits) leave(now int64, client net.Addr) {
	addr := Machine(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.addresses[addr]
	if v.connections--; v.connections == 0 {
		v.keepUntil = v.limiter.newAt()
		l.departed = append(l.departed, departure{addr, v.keepUntil})
	}
	l.forget(now)
}

// forget forgets the addresses whose last client has gone long enough ago.
func (l *limits) forget(now int64) {
	for len(l.departed) > 0 && l.departed[0].keepUntil <= now {
		addr := l.departed[0].machine
		l.departed = l.departed[1:]
		if v := l.addresses[addr]; v != nil && v.connections == 0 && v.keepUntil <= now {
			delete(l.addresses, addr)
		}
	}
}

// Machine returns what stands for all addresses of a client's machine; the zero Addr if
// the client has none.
func Machine(client net.Addr) netip.Addr {
	addr, ok := address(client)
	if !ok || !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only for a longer one
	return network.Addr()
}

// A limiter implements conversation.Limiter by the generic cell rate algorithm: each
// command takes its share of a second, one after the other, and a burst of them may come
// at once. It may be switched off, and then costs next to nothing. If several loops ask at
// the same time they may take more tokens than there are; the next ones wait for that.
//
// It is no rate.Limiter: that takes no token back, and makes new ones of the difference
// between the clocks of two loops.
type limiter struct {
	limits *limits
	every  atomic.Int64 // ns; the share of a command. 0: any number may come

	mu        sync.Mutex
	busyUntil int64 // ns; when the shares of all commands with tokens are over
}

// burst is how many commands may come at once, as the time of their shares in ns.
const burst = int64(time.Second)

func (l *limits) newLimiter(perSecond int) *limiter {
	k := &limiter{limits: l}
	k.every.Store(timeOf(perSecond))
	return k
}

// timeOf returns the share of a command in ns; 0 for any number.
func timeOf(perSecond int) int64 {
	if perSecond <= 0 {
		return 0
	}
	return max(1, int64(time.Second)/int64(perSecond))
}

// set says how many commands there may be in a second; 0: any number.
func (l *limiter) set(now int64, perSecond int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, every := l.every.Load(), timeOf(perSecond)
	if before > 0 && l.busyUntil > now {
		l.busyUntil = now + (l.busyUntil-now)/before*every // tokens taken count at the new rate
	}
	l.every.Store(every)
}

// Tokens implements conversation.Limiter.
func (l *limiter) Tokens(now int64) int {
	every := l.every.Load()
	if every == 0 {
		return math.MaxInt32
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(max(0, now+burst-max(l.busyUntil, now)) / every)
}

// Take implements conversation.Limiter.
func (l *limiter) Take(now int64, n int) (at int64) {
	every := l.every.Load()
	if every == 0 {
		return now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busyUntil = max(l.busyUntil, now) + int64(n)*every
	at = max(now, l.busyUntil-burst)
	if n == 1 && at > now {
		l.limits.throttled.Add(1)
	}
	return at
}

// GiveBack implements conversation.Limiter.
func (l *limiter) GiveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busyUntil -= int64(n) * l.every.Load()
}

// newAt returns when the limiter is as good as a new one.
func (l *limiter) newAt() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busyUntil
}
