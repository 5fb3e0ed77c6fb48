package api

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A throttle keeps what looks at many things from taking the turns and the processors of the clients of the queue. Its bounds
// are for all requests and tasks together.
type throttle struct {
	inTurns lane // what takes several
	bodies  lane // looked into

	mu    sync.Mutex
	walks map[walkKind][]string // who goes over many jobs: identities, or addresses
}

// A walkKind says how long a walk over many jobs lasts.
type walkKind uint8

const (
	aPage    walkKind = iota // until there is a page
	anExport                 // as long as its client reads
)

const (
	// breath is the pause after a turn of what takes several. Without it they would keep
	// a processor busy, for which the clients of the queue would have to wait.
	breath = time.Millisecond

	// stretch is how long bodies are looked into at once. Then nobody looks into any for as long.
	stretch = 2 * time.Millisecond

	walksOfAKind = 2 // at once, by different clients
	walkPatience = time.Second
	walkInterval = 10 * time.Millisecond
)

func newThrottle() *throttle {
	return &throttle{inTurns: make(lane, 1), bodies: make(lane, 1), walks: make(map[walkKind][]string)}
}

// A lane lets one at a time in, in the order in which they come.
type lane chan struct{}

// enter waits until the lane is free. The error is that of the context.
func (l lane) enter(ctx context.Context) error {
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

// leave lets the next one in after a rest.
func (l lane) leave(rest time.Duration) {
	if rest == 0 {
		<-l
		return
	}
	time.AfterFunc(rest, func() { <-l })
}

// turns runs a step in as many turns as it wants, each of which turn runs, and calls between after each until that returns false.
// The error is that of the context, of turn, or of a step.
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

// oneTurn runs a step in a turn, and reports whether there is more to do.
func (t *throttle) oneTurn(ctx context.Context, turn func(f func(e *engine.Engine, now int64) error) error,
	step func(e *engine.Engine, now int64) (more bool, err error)) (more bool, err error) {
	if err := t.inTurns.enter(ctx); err != nil {
		return false, err
	}
	var once sync.Once
	over := func(rest time.Duration) { once.Do(func() { t.inTurns.leave(rest) }) }
	defer over(0) // the step may not have been run, or have panicked
	more = true
	err = turn(func(e *engine.Engine, now int64) (err error) {
		if more, err = step(e, now); more {
			over(breath)
		}
		over(0) // within the turn: who waits until it is durable holds up nobody
		return err
	})
	return more, err
}

// beginWalk lets a walk begin. It waits a moment until others have ended, for a browser that asks again has only just hung up.
func (r *request) beginWalk(kind walkKind) (end func(), err error) {
	t, who := r.api.throttle, r.caller.Share()
	for waited := time.Duration(0); !t.start(kind, who); waited += walkInterval {
		if waited >= walkPatience {
			return nil, problemf(http.StatusServiceUnavailable, "jobs are searched, listed or exported for you already, or for several others: try again").After(walkPatience)
		}
		select {
		case <-time.After(walkInterval):
		case <-r.ctx.Done():
			return nil, errGone
		}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.walks[kind] = slices.DeleteFunc(t.walks[kind], func(other string) bool { return other == who })
	}, nil
}

// start reports whether there is room for a walk, which has then begun.
func (t *throttle) start(kind walkKind, who string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := t.walks[kind]
	if len(others) == walksOfAKind || slices.Contains(others, who) {
		return false
	}
	t.walks[kind] = append(others, who)
	return true
}

// A reading looks into bodies.
type reading struct {
	ctx   context.Context
	lane  lane
	in    bool // the lane
	since time.Time
	spent time.Duration // in the lane
}

// each tells of the jobs of a slice, one after the other, whether they match, until tell returns false or the client has gone.
func (rd *reading) each(slice []walkedJob, s *search, tell func(j *walkedJob, matches bool) bool) {
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

// goOn must be called every millisecond or so. It takes a rest when the time has come, and reports whether the client is
// still there.
func (rd *reading) goOn() bool {
	if rd.in && time.Since(rd.since) < stretch {
		return rd.ctx.Err() == nil
	}
	rd.end()
	rd.in = rd.lane.enter(rd.ctx) == nil
	rd.since = time.Now()
	return rd.in
}

func (rd *reading) end() {
	if rd.in {
		took := time.Since(rd.since)
		rd.in, rd.spent = false, rd.spent+took
		rd.lane.leave(took)
	}
}
