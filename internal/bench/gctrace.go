package bench

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"time"
)

// gcTraceEnv makes the Go runtime write a line for each collection.
const gcTraceEnv = "GODEBUG=gctrace=1"

// A gcTrace reads what a server writes and keeps the pauses of its garbage
// collector. A server that is not a Go program has none. It is safe for
// concurrent use.
type gcTrace struct {
	mu      sync.Mutex
	partial []byte // a line whose end has not been read
	count   int
	longest time.Duration
}

// Write takes a piece of the server's output.
func (g *gcTrace) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.partial = append(g.partial, b...)
	for {
		line, rest, whole := bytes.Cut(g.partial, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		if pause, ok := parseGCTrace(string(line)); ok {
			g.count++
			g.longest = max(g.longest, pause)
		}
		g.partial = rest
	}
}

// report returns the number of collections so far, and the longest pause.
func (g *gcTrace) report() (count int, longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count, g.longest
}

// parseGCTrace returns the longer one of the two pauses of a collection. The
// line looks like this; the phases of "ms clock" are sweep termination, during
// which the world is stopped, concurrent mark, and mark termination, during
// which it is stopped again (package runtime, "Environment Variables"):
//
//	gc 7 @0.131s 2%: 0.019+1.6+0.004 ms clock, 0.038+0.25/0.9/0+0.009 ms cpu, 4->5->2 MB, ...
func parseGCTrace(line string) (pause time.Duration, ok bool) {
	if !strings.HasPrefix(line, "gc ") {
		return 0, false
	}
	_, rest, _ := strings.Cut(line, ": ")
	clock, _, ok := strings.Cut(rest, " ms clock")
	phases := strings.Split(clock, "+")
	if !ok || len(phases) != 3 {
		return 0, false
	}
	for _, i := range []int{0, 2} {
		ms, err := strconv.ParseFloat(phases[i], 64)
		if err != nil {
			return 0, false
		}
		pause = max(pause, time.Duration(ms*float64(time.Millisecond)))
	}
	return pause, true
}
