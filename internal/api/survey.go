package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// perSurvey is how many tubes a turn copies the stats of. That takes half a millisecond or so.
const perSurvey = 2500

// survey tells of all tubes, in several turns. tell is called between them. The error is that
// of the context, or a problem: then not all were told of.
func (a *API) survey(ctx context.Context, tell func(t *tubes.Tube)) error {
	next := 0
	return a.look(ctx, func(e *engine.Engine, now int64, see func(t tubes.Tube)) (more bool) {
		next = e.SurveyTubes(now, next, perSurvey, func(name string, st engine.TubeStats) {
			see(tubes.Tube{Name: name, At: now, TubeStats: st, Most: e.LimitsOf(name)})
		})
		return next > 0
	}, tell)
}

// look takes steps in turns that nobody's rights matter for, and tells between them of the tubes that a step has seen.
func (a *API) look(ctx context.Context, step func(e *engine.Engine, now int64, see func(t tubes.Tube)) (more bool), tell func(t *tubes.Tube)) error {
	var seen []tubes.Tube
	r := &request{api: a, op: &operation{method: http.MethodGet}, ctx: ctx}
	return r.turnsUntil(func(e *engine.Engine, now int64) (more bool, err error) {
		seen = seen[:0]
		return step(e, now, func(t tubes.Tube) { seen = append(seen, t) }), nil
	}, func() bool {
		for i := range seen {
			tell(&seen[i])
		}
		return true
	})
}

// A sharedSurvey is what a survey has found, for those who can bear that it is not of just now.
type sharedSurvey struct {
	begun time.Time
	done  chan struct{} // closed when it has ended; who comes meanwhile waits
	tubes []tubes.Tube
	err   error // not all are there
}

// surveys keeps the last survey that was shared.
type surveys struct {
	mu   sync.Mutex
	last *sharedSurvey // nil: none that is of use
}

// forget drops the survey: something has changed, and who has changed it wants to see that.
func (s *surveys) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// expire drops the survey if it is too old for everybody, for it may be large.
func (s *surveys) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.last.begun) > surveyKept {
		s.last = nil
	}
}

const surveyKept = 5 * time.Second

// take returns the last survey if it began no longer ago than may be, or else a new one, which
// the caller must make.
func (s *surveys) take(age time.Duration) (one *sharedSurvey, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.begun) > age {
		s.last = &sharedSurvey{begun: time.Now(), done: make(chan struct{})}
		return s.last, true
	}
	return s.last, false
}

// makeShared makes a survey that others wait for, so that it does not end when this client goes. One that has failed, be it by a panic,
// is only for those who wait for it already.
func (a *API) makeShared(ctx context.Context, one *sharedSurvey) {
	one.err = errNoSurvey
	defer func() {
		if close(one.done); one.err != nil {
			a.surveys.forget()
		}
	}()
	one.err = a.survey(context.WithoutCancel(ctx), func(t *tubes.Tube) { one.tubes = append(one.tubes, *t) })
}

// errNoSurvey is the answer to those who have waited for a survey that panicked.
var errNoSurvey = errors.New("api: the tubes could not be looked at")

// shared tells of all tubes as they were not longer ago than an age; 0: now. Several that come
// at once then share the work. What was changed through the API is always seen.
func (a *API) shared(ctx context.Context, age time.Duration, tell func(t *tubes.Tube)) error {
	if age == 0 {
		return a.survey(ctx, tell)
	}
	one, isNew := a.surveys.take(age)
	if isNew {
		a.makeShared(ctx, one)
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return errGone
	}
	for i := range one.tubes {
		tell(&one.tubes[i])
	}
	return one.err
}

// seen looks at all tubes that the client may see.
func (r *request) seen() *tubes.Look {
	all := r.caller.Identity.Meets(statsEverywhere)
	return &tubes.Look{Rates: r.api.history.rates, Growth: r.api.history.addGrowth, Each: func(tell func(t *tubes.Tube)) error {
		return r.api.shared(r.ctx, r.caller.MaxAge, func(t *tubes.Tube) {
			if all || r.caller.Identity.Meets(statsNamed, t.Name) {
				tell(t)
			}
		})
	}}
}
