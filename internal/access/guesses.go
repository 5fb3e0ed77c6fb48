package access

import (
	"net/netip"
	"sync"
	"time"
)

// guessesPerMinute is how many tokens that nobody has a machine may try.
const guessesPerMinute = 10

// Guesses counts the tokens that nobody has. One that somebody has is never held up by them: all clients of a proxy have one
// address. The zero value is ready, and its methods may be called by any goroutine.
type Guesses struct {
	mu     sync.Mutex
	minute time.Time
	of     map[netip.Addr]int // since then
}

// Wrong notes that a token was wrong, and reports whether that machine has tried too many. The zero Addr is all who have none.
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
