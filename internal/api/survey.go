package api

import (
	"context"
	"net/http"

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

// seen looks at all tubes that the client may see. What was changed through the API is always seen.
func (r *request) seen() *tubes.Look {
	all := r.caller.Identity.Meets(statsEverywhere)
	return &tubes.Look{Rates: r.api.history.rates, Growth: r.api.history.addGrowth, Each: func(tell func(t *tubes.Tube)) error {
		look := r.api.survey
		if age := r.caller.MaxAge; age > 0 {
			look = func(ctx context.Context, tell func(t *tubes.Tube)) error {
				return r.api.surveys.Each(ctx, age, r.api.survey, tell)
			}
		}
		err := look(r.ctx, func(t *tubes.Tube) {
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
