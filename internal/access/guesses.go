package access

import (
	"net/netip"
	"sync"
	"time"
)

// guessesPerMinute is the maximum number of invalid tokens per machine and minute.
const guessesPerMinute = 10

// A Guesses limits the number of invalid tokens per address and minute. Valid tokens are
// never delayed, because all clients of a proxy share one address. The zero value is
// ready to use. Guesses is safe for concurrent use.
type Guesses struct {
	mu     sync.Mutex
	minute time.Time
	of     map[netip.Addr]int // number of invalid tokens since then, by machine
}

// Wrong records an invalid token and reports whether the machine has exceeded its limit.
// All clients without an address share the zero Addr.
func (g *Guesses) Wrong(now time.Time, addr netip.Addr) (tooMany bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil || now.Sub(g.minute) >= time.Minute {
		g.minute, g.of = now, make(map[netip.Addr]int)
	}
	addr = Machine(addr)
	g.of[addr]++
	return g.of[addr] > guessesPerMinute
}
