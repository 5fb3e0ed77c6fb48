package api

import (
	"context"
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// perSurvey is the number of tubes whose stats a turn copies, which takes about half a
// millisecond.
const perSurvey = 2500

// survey calls tell for every tube, spread over several turns. If it returns an error
// (the context's error or a problem), some tubes are missing.
func (a *API) survey(ctx context.Context, tell func(t *tubes.Tube)) error {
	next := 0
	return look(ctx, a, func(e *engine.Engine, now int64, see func(t tubes.Tube)) (more bool) {
		next = e.SurveyTubes(now, next, perSurvey, func(name string, st engine.TubeStats) {
			see(tubes.Tube{Name: name, At: now, TubeStats: st, Most: e.LimitsOf(name)})
		})
		return next > 0
	}, tell)
}

// look runs a step in as many turns as it needs, without checking rights. Between the
// turns, it calls tell for all elements that the step has passed to see.
func look[T any](ctx context.Context, a *API, step func(e *engine.Engine, now int64, see func(T)) (more bool), tell func(*T)) error {
	var seen []T
	r := &request{api: a, op: &operation{method: http.MethodGet}, ctx: ctx}
	return r.turnsUntil(func(e *engine.Engine, now int64) (more bool, err error) {
		seen = seen[:0]
		return step(e, now, func(t T) { seen = append(seen, t) }), nil
	}, func() bool {
		for i := range seen {
			tell(&seen[i])
		}
		return true
	})
}

// tubes returns a survey of the tubes that the client may see.
func (r *request) tubes() *tubes.Survey {
	all := r.caller.Identity.Meets(statsEverywhere)
	return &tubes.Survey{
		Rates: r.api.history.rates, Growth: r.api.history.addCounts, Workers: r.workers,
		Each: func(tell func(t *tubes.Tube)) error {
			return shared(r, &r.api.surveys, r.api.survey, func(t *tubes.Tube) {
				if all || r.caller.Identity.Meets(statsNamed, t.Name) {
					tell(t)
				}
			})
		},
	}
}

// shared runs a survey. If the client accepts older answers, it uses a cached survey.
func shared[T any](r *request, cache *tubes.Cache[T], look func(ctx context.Context, tell func(*T)) error, tell func(*T)) error {
	var err error
	if age := r.caller.MaxAge; age > 0 {
		err = cache.Each(r.ctx, age, look, tell)
	} else {
		err = look(r.ctx, tell)
	}
	if err != nil && r.ctx.Err() != nil {
		return errGone
	}
	return err
}

// forget drops the cached surveys after a change.
func (a *API) forget() {
	a.surveys.Forget()
	a.holders.Forget()
}
