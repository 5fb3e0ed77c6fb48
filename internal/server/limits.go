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
	// all its connections; clients whom nothing identifies count as one if they have
	// the same address, and all of unix sockets count as one. After a pause there
	// may be as many at once. What is beyond is not refused: the server does not
	// read on until the time has come. 0: any number.
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

	throttled atomic.Uint64 // how often somebody had to wait
}

// visitors are the clients of an address.
type visitors struct {
	connections int
	limiter     *limiter // of those whom nothing identifies
	forget      int64    // as the last departure says
}

// A departure is that of the last client of an address. Its limiter is kept until it is
// as good as a new one: else a client would only have to connect again to be free of what
// it has taken.
type departure struct {
	machine netip.Addr
	forget  int64 // ns; when there is no more to keep
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
func (l *limits) enter(now int64, client net.Addr) error {
	addr := machine(client)
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
	addr := machine(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.addresses[addr]
	if v.connections--; v.connections == 0 {
		v.forget = v.limiter.unused()
		l.departed = append(l.departed, departure{addr, v.forget})
	}
	l.forget(now)
}

// forget forgets the addresses whose last client has gone long enough ago.
func (l *limits) forget(now int64) {
	for len(l.departed) > 0 && l.departed[0].forget <= now {
		addr := l.departed[0].machine
		l.departed = l.departed[1:]
		if v := l.addresses[addr]; v != nil && v.connections == 0 && v.forget <= now {
			delete(l.addresses, addr)
		}
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

// A limiter implements conversation.Limiter: the commands of a second may come at once,
// and a token is there again when the time is over that the commands before it have been
// given. It may be switched off, which costs its users next to nothing. If several loops
// ask at the same time they may take more than there is; the next have to wait for that.
//
// It is no rate.Limiter, since that takes nothing back, and makes tokens of the difference
// when the clocks of two loops differ.
type limiter struct {
	limits *limits
	every  atomic.Int64 // ns that a command is given; 0: any number may come

	mu    sync.Mutex
	taken int64 // when the time of all commands is over that have tokens; ns
}

// burst is in how much time as many commands may come as can come at once, in ns.
const burst = int64(time.Second)

func (l *limits) newLimiter(perSecond int) *limiter {
	k := &limiter{limits: l}
	k.every.Store(timeOf(perSecond))
	return k
}

// timeOf returns how many ns a command is given; 0 for any number.
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
	if before > 0 && l.taken > now {
		l.taken = now + (l.taken-now)/before*every // what was taken counts at the new rate
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
	return int(max(0, now+burst-max(l.taken, now)) / every)
}

// Take implements conversation.Limiter.
func (l *limiter) Take(now int64, n int) (at int64) {
	every := l.every.Load()
	if every == 0 {
		return now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = max(l.taken, now) + int64(n)*every
	at = max(now, l.taken-burst)
	if n == 1 && at > now {
		l.limits.throttled.Add(1)
	}
	return at
}

// GiveBack implements conversation.Limiter.
func (l *limiter) GiveBack(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= int64(n) * l.every.Load()
}

// unused returns from when on the limiter is as if nobody had used it.
func (l *limiter) unused() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}
