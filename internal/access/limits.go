package access

import (
	"errors"
	"maps"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of clients, which can be changed while the server runs. The zero value has
// none.
type Limits struct {
	// ConnectionsPerAddress is how many connections of one address may be open. A
	// further one is closed if none ends within a second. 0: any number. A network of
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

// limits are the Limits in force and what they need to know.
type limits struct {
	mu sync.Mutex

	// Guarded by mu.
	inForce    Limits
	addresses  map[netip.Addr]*address // by machine; the zero Addr: of unix sockets
	room       int                     // for addresses, before those are forgotten that may be
	identities map[string]*Limiter     // by name; those that have connected

	throttled atomic.Uint64
}

// An address is what the clients of one have used up.
type address struct {
	connections int      // that have entered
	proxied     int      // of clients of other members
	commands    *Limiter // of those that nothing identifies
	strangers   *Limiter // of those that are to prove who they are, and do not
}

// ErrAddressFull says that an address has as many connections as it may have.
var ErrAddressFull = errors.New("too many connections from its address")

// SetLimits replaces the limits. Connections that exceed them by now stay.
func (l *limits) SetLimits(now int64, to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inForce = to
	for name, limiter := range l.identities {
		limiter.set(now, to.commandsOf(name))
	}
	for _, v := range l.addresses {
		v.commands.set(now, to.CommandsPerSecond)
		v.strangers.set(now, to.CommandsPerSecond)
	}
}

// commandsOf returns how many commands a second an identity may give.
func (l *Limits) commandsOf(identity string) int {
	if n, ok := l.OfIdentity[identity]; ok {
		return n
	}
	return l.CommandsPerSecond
}

// Throttled returns how often a client had to wait for a token, or was told to.
func (l *limits) Throttled() uint64 { return l.throttled.Load() }

// LimiterOf returns the limiter of an identity; that of its address if it is Nobody or nil.
func (l *limits) LimiterOf(id *Identity, addr netip.Addr) *Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == nil || id.name == "" {
		return l.of(addr).commands
	}
	if l.identities == nil {
		l.identities = make(map[string]*Limiter)
	}
	if l.identities[id.name] == nil {
		l.identities[id.name] = l.newLimiter(l.inForce.commandsOf(id.name))
	}
	return l.identities[id.name]
}

// OfStrangers returns the limiter of the clients of an address that must prove who they are.
// It is not that of the other clients, which they would delay.
func (l *limits) OfStrangers(addr netip.Addr) *Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(addr).strangers
}

// Request takes a token for a client that has no connection which the limits know of, such
// as one of the JSON API, and returns 0; or, if there is none, how long it should wait before
// it tries again, in ns.
func (l *limits) Request(now int64, id *Identity, addr netip.Addr) (wait int64) {
	l.mu.Lock()
	l.forget(now)
	l.mu.Unlock()
	return l.LimiterOf(id, addr).tryTake(now)
}

// Enter counts a connection, unless its address has enough. A proxied one counts for the
// limit of its address at the member that it has entered.
func (l *limits) Enter(now int64, addr netip.Addr, proxied bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	v := l.of(addr)
	if proxied {
		v.proxied++
	} else if most := l.inForce.ConnectionsPerAddress; most > 0 && v.connections-v.proxied >= most && addr.IsValid() {
		return ErrAddressFull
	}
	v.connections++
	return nil
}

// Leave is called when a connection that has entered has ended.
func (l *limits) Leave(addr netip.Addr, proxied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.of(addr)
	v.connections--
	if proxied {
		v.proxied--
	}
}

// of returns the state of an address, with mu locked.
func (l *limits) of(addr netip.Addr) *address {
	addr = Machine(addr)
	v := l.addresses[addr]
	if v == nil {
		if l.addresses == nil {
			l.addresses = make(map[netip.Addr]*address)
		}
		v = &address{commands: l.newLimiter(l.inForce.CommandsPerSecond), strangers: l.newLimiter(l.inForce.CommandsPerSecond)}
		l.addresses[addr] = v
	}
	return v
}

// forget forgets, whenever twice as many addresses are known as were left the last time, those without connections whose limiters
// are as good as new ones: before, a client would get new tokens by connecting again. With mu locked.
func (l *limits) forget(now int64) {
	if len(l.addresses) <= l.room {
		return
	}
	maps.DeleteFunc(l.addresses, func(_ netip.Addr, v *address) bool {
		return v.connections == 0 && max(v.commands.newAt(), v.strangers.newAt()) <= now
	})
	l.room = 2 * len(l.addresses)
}

// plain returns an address that can be compared with networks: a Prefix has no zone.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// Machine returns what stands for all addresses of a client's machine; the zero Addr if
// the client has none.
func Machine(addr netip.Addr) netip.Addr {
	if addr = plain(addr); !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only for a longer one
	return network.Addr()
}

// A Limiter bounds how many commands come in a second, by the generic cell rate algorithm:
// each command takes its share of a second, one after the other, and a burst of them may come
// at once. It may be switched off, and then costs next to nothing. If several loops ask at
// the same time they may take more tokens than there are; the next ones wait for that.
// Times are in ns, on a clock that all callers share.
//
// It is no rate.Limiter: that takes no token back, and makes new ones of the difference
// between the clocks of two loops.
type Limiter struct {
	limits *limits
	every  atomic.Int64 // ns; the share of a command. 0: any number may come

	mu        sync.Mutex
	busyUntil int64 // ns; when the shares of all commands with tokens are over
}

// burst is how many commands may come at once, as the time of their shares in ns.
const burst = int64(time.Second)

func (l *limits) newLimiter(perSecond int) *Limiter {
	k := &Limiter{limits: l}
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
func (l *Limiter) set(now int64, perSecond int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, every := l.every.Load(), timeOf(perSecond)
	if before > 0 && l.busyUntil > now {
		l.busyUntil = now + (l.busyUntil-now)/before*every // tokens taken count at the new rate
	}
	l.every.Store(every)
}

// Tokens returns how many commands may come now; a large number if there is no limit.
func (l *Limiter) Tokens(now int64) int {
	every := l.every.Load()
	if every == 0 {
		return math.MaxInt32
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(max(0, now+burst-max(l.busyUntil, now)) / every)
}

// Take takes tokens for n commands, those of the future if need be, and returns when they
// may come.
func (l *Limiter) Take(now int64, n int) (at int64) {
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

// GiveBack gives tokens back that were taken and not used.
func (l *Limiter) GiveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busyUntil -= int64(n) * l.every.Load()
}

// tryTake takes a token if there is one, and returns how long it takes until there is one
// otherwise.
func (l *Limiter) tryTake(now int64) (wait int64) {
	every := l.every.Load()
	if every == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until := max(l.busyUntil, now) + every
	if wait = until - burst - now; wait > 0 {
		l.limits.throttled.Add(1)
		return wait
	}
	l.busyUntil = until
	return 0
}

// newAt returns when the limiter is as good as a new one.
func (l *Limiter) newAt() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busyUntil
}
