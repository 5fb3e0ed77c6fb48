package api

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A throttle keeps searches, lists and exports from starving clients of the queue of
// turns and CPU. Its limits are for all requests and tasks together.
type throttle struct {
	inTurns lane // requests that take several turns
	bodies  lane // requests that search bodies

	mu    sync.Mutex
	walks map[walkKind][]string // identities or addresses of running scans
}

// A walkKind is a kind of scan, by its duration.
type walkKind uint8

const (
	aPage    walkKind = iota // until a page is complete
	anExport                 // as long as the client reads
)

const (
	// breath is the pause after each turn of an operation that takes several. Without it,
	// the operation would keep a CPU busy, and clients of the queue would wait for it.
	breath = time.Millisecond

	// stretch is the time that bodies are searched without a pause. The pause takes as
	// long.
	stretch = 2 * time.Millisecond

	walksOfAKind = 2 // at the same time, by different clients
	walkPatience = time.Second
	walkInterval = 10 * time.Millisecond
)

func newThrottle() *throttle {
	return &throttle{inTurns: make(lane, 1), bodies: make(lane, 1), walks: make(map[walkKind][]string)}
}

// A lane is a lock that is fair: waiters get it in their order.
type lane chan struct{}

// enter waits until the lane is free. The error is the error of ctx.
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

// leave frees the lane after a pause.
func (l lane) leave(rest time.Duration) {
	if rest == 0 {
		<-l
		return
	}
	time.AfterFunc(rest, func() { <-l })
}

// turns runs a step in as many turns as needed. It calls between after each turn and ends
// if between returns false. It returns the error of ctx, of turn, or of the step.
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
	defer over(0) // for a step that was not run or panicked
	more = true
	err = turn(func(e *engine.Engine, now int64) (err error) {
		if more, err = step(e, now); more {
			over(breath)
		}
		over(0) // within the turn, so that no other operation waits until the turn is durable
		return err
	})
	return more, err
}

// beginWalk starts a scan. It waits for a moment for others to end, because a browser
// that repeats a request has only just closed the previous request.
func (r *request) beginWalk(kind walkKind) (end func(), err error) {
	t, who := r.api.throttle, r.caller.Share()
	for waited := time.Duration(0); !t.start(kind, who); waited += walkInterval {
		if waited >= walkPatience {
			return nil, problemf(http.StatusServiceUnavailable, "too many searches, lists or exports are running, by you or by others: try again").After(walkPatience)
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

// start reserves a slot for a scan, and reports whether there was one.
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

// A reading searches bodies.
type reading struct {
	ctx   context.Context
	lane  lane
	in    bool // it has the lane
	since time.Time
	spent time.Duration // time in the lane
}

// each calls tell for the jobs of a slice, with the result of the match, until tell
// returns false or the client disconnects.
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

// goOn must be called about every millisecond. It pauses if necessary, and reports
// whether the client is still connected.
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
