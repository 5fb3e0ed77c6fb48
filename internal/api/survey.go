package api

import (
	"context"
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
	var visit visit
	batch := make([]tubes.Tube, 0, perSurvey)
	for next, first := 0, true; first || next > 0; first = false {
		from := next
		next, batch = 0, batch[:0] // where the turns have ended
		err := a.pacedTurn(ctx, &visit, func(e *engine.Engine, now int64) (more bool) {
			next = e.SurveyTubes(now, from, perSurvey, func(name string, st engine.TubeStats) {
				batch = append(batch, tubes.Tube{Name: name, At: now, TubeStats: st, Most: e.LimitsOf(name)})
			})
			return next > 0
		})
		if err != nil {
			return err
		}
		for i := range batch {
			tell(&batch[i])
		}
	}
	return nil
}

// pacedTurn runs one of several turns that nobody's rights matter for. The error is that of the context, or a problem.
func (a *API) pacedTurn(ctx context.Context, v *visit, f func(e *engine.Engine, now int64) (more bool)) error {
	over, err := a.throttle.turn(ctx)
	if err != nil {
		return err
	}
	defer over(false)
	// Its error is about changes that a sync did not make durable, which are none of ours.
	if called, _ := v.turn(a.broker, func(e *engine.Engine, now int64) { over(f(e, now)) }); !called {
		return errNotLeading
	}
	return nil
}

// A sharedSurvey is what a survey has found, for those who can bear that it is not of just now.
type sharedSurvey struct {
	done  chan struct{} // closed when it is complete
	begun time.Time
	tubes []tubes.Tube
	err   error // not all are there
}

// surveys keeps the last survey that was shared.
type surveys struct {
	mu   sync.Mutex
	last *sharedSurvey // nil: none that is of use
	size int           // how many tubes the one before had
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
// the caller then has to make.
func (s *surveys) take(age time.Duration) (one *sharedSurvey, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.last.begun) <= age {
		return s.last, false
	}
	s.last = &sharedSurvey{done: make(chan struct{}), begun: time.Now(), tubes: make([]tubes.Tube, 0, s.size+s.size/8)}
	return s.last, true
}

// complete ends a survey that take has returned as a new one. One that has failed is only for those who wait for it already.
func (s *surveys) complete(one *sharedSurvey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = len(one.tubes)
	if one.err != nil && s.last == one {
		s.last = nil
	}
	close(one.done)
}

// shared tells of all tubes as they were not longer ago than an age; 0: now. Several that come
// at once then share the work. What was changed through the API is always seen.
func (a *API) shared(ctx context.Context, age time.Duration, tell func(t *tubes.Tube)) error {
	if age == 0 {
		return a.survey(ctx, tell)
	}
	one, isNew := a.surveys.take(age)
	if isNew {
		// Others wait for it, so that it does not end when this client goes.
		one.err = a.survey(context.WithoutCancel(ctx), func(t *tubes.Tube) { one.tubes = append(one.tubes, *t) })
		a.surveys.complete(one)
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range one.tubes {
		tell(&one.tubes[i])
	}
	return one.err
}

// look looks at all tubes that the client may see.
func (r *request) look() *tubes.Look {
	all := r.caller.Identity.Meets(statsEverywhere)
	return &tubes.Look{Rates: r.api.history.rates, Growth: r.api.history.addGrowth, Each: func(tell func(t *tubes.Tube)) error {
		err := r.api.shared(r.ctx, r.caller.MaxAge, func(t *tubes.Tube) {
			if all || r.caller.Identity.Meets(statsNamed, t.Name) {
				tell(t)
			}
		})
		if err != nil && r.ctx.Err() != nil {
			return errGone
		}
		return err
	}}
}
