package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A throttle keeps searches, lists and exports from starving the queue's clients of turns
// and CPU time. Its limits apply to all requests and tasks together.
type throttle struct {
	inTurns gate // requests that take several turns
	bodies  gate // requests that search bodies

	scans [3]gate // by scanKind

	mu  sync.Mutex
	own map[scanner]gate // for the scans of each client
}

// A scanner is a client, by identity or address, that starts scans of a kind.
type scanner struct {
	kind scanKind
	who  string
}

// A scanKind is a kind of scan, by its duration.
type scanKind uint8

const (
	aPage    scanKind = iota // lasts until a page is complete
	anExport                 // lasts as long as the client reads
	anUpload                 // a large request: lasts as long as the client sends
)

const (
	// yieldPause is the pause after each turn of an operation that takes several. Without
	// the pause, the operation would keep a CPU busy, and the queue's clients would wait
	// for it.
	yieldPause = time.Millisecond

	// maxBurst is the time for which bodies are searched without a pause. The pause is as
	// long as the search.
	maxBurst = 2 * time.Millisecond

	scansOfAKind = 2 // at the same time, by different clients
	scanPatience = time.Second
	maxScanners  = 1000 // elements of throttle.own; beyond it, all clients get new gates
)

func newThrottle() *throttle {
	return &throttle{inTurns: make(gate, 1), bodies: make(gate, 1), own: make(map[scanner]gate),
		scans: [3]gate{make(gate, scansOfAKind), make(gate, scansOfAKind), make(gate, scansOfAKind)}}
}

// ownGate returns the gate for the scans of a client.
func (t *throttle) ownGate(client scanner) gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own[client] == nil {
		if len(t.own) >= maxScanners {
			clear(t.own)
		}
		t.own[client] = make(gate, 1)
	}
	return t.own[client]
}

// A gate is a fair lock or semaphore: waiters enter it in the order of their arrival.
type gate chan struct{}

// enter waits until the gate is free. The error is the error of ctx.
func (l gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave frees the gate after a pause.
func (l gate) leave(rest time.Duration) {
	if rest == 0 {
		<-l
		return
	}
	time.AfterFunc(rest, func() { <-l })
}

// turns runs a step in as many turns as needed. It calls between after each turn, and
// stops if between returns false. It returns an error of ctx, turn or step.
func (t *throttle) turns(ctx context.Context, turn func(f func(e *engine.Engine, now int64) error) error,
	step func(e *engine.Engine, now int64) (more bool, err error), between func() bool) error {
	for more := true; more; {
		var err error
		if more, err = t.oneTurn(ctx, turn, step); err != nil || !between() {
			return err
		}
	}
	return nil
}

// oneTurn runs a step in a turn, and reports whether there is more.
func (t *throttle) oneTurn(ctx context.Context, turn func(f func(e *engine.Engine, now int64) error) error,
	step func(e *engine.Engine, now int64) (more bool, err error)) (more bool, err error) {
	if err := t.inTurns.enter(ctx); err != nil {
		return false, err
	}
	var once sync.Once
	over := func(rest time.Duration) { once.Do(func() { t.inTurns.leave(rest) }) }
	defer over(0) // for a step that did not run, or panicked
	more = true
	err = turn(func(e *engine.Engine, now int64) (err error) {
		if more, err = step(e, now); more {
			over(yieldPause)
		}
		over(0) // called within the turn, so that no other operation waits until the turn is durable
		return err
	})
	return more, err
}

// beginScan starts a scan. If necessary, it waits briefly for other scans to end, because
// a browser that repeats a request has only just closed the previous one. A client runs
// one scan of a kind at a time, so that it cannot keep other clients from scanning.
func (r *request) beginScan(kind scanKind) (end func(), err error) {
	ctx, cancel := context.WithTimeout(r.ctx, scanPatience)
	defer cancel()
	t := r.api.throttle
	all, own := t.scans[kind], t.ownGate(scanner{kind, r.caller.Share()})
	if own.enter(ctx) == nil {
		if all.enter(ctx) == nil {
			return func() { all.leave(0); own.leave(0) }, nil
		}
		own.leave(0)
	}
	if r.ctx.Err() != nil {
		return nil, errGone
	}
	return nil, problemf(http.StatusServiceUnavailable, "too many searches, lists, exports or large requests are running; retry later").After(scanPatience)
}

// A reading is a search of bodies that holds and releases the gate.
type reading struct {
	ctx   context.Context
	gate  gate
	in    bool // the search holds the gate
	since time.Time
	spent time.Duration // time in the gate
	job   candidate     // the job that the search examines; reused, to allocate nothing for a job
}

// each calls tell for the jobs of a slice, with the result of the match, until tell
// returns false or the client disconnects.
func (rd *reading) each(slice []scannedJob, s *search, tell func(j *scannedJob, matches bool) bool) {
	defer rd.end()
	for i := range slice {
		j := &slice[i]
		if !s.isAny() && !rd.goOn() {
			return
		}
		if matches := s.matches(j, rd); rd.ctx.Err() != nil || !tell(j, matches) {
			return
		}
	}
}

// goOn must be called about every millisecond. It pauses if necessary, and reports
// whether the client is still connected.
func (rd *reading) goOn() bool {
	if rd.in && time.Since(rd.since) < maxBurst {
		return rd.ctx.Err() == nil
	}
	rd.end()
	rd.in = rd.gate.enter(rd.ctx) == nil
	rd.since = time.Now()
	return rd.in
}

func (rd *reading) end() {
	if rd.in {
		took := time.Since(rd.since)
		rd.in, rd.spent = false, rd.spent+took
		rd.gate.leave(took)
	}
}
