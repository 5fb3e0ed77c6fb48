package api

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// perSurvey is how many tubes a turn copies the stats of. That takes some 0.1 ms.
const perSurvey = 1500

// A surveyedTube is a tube with its stats.
type surveyedTube struct {
	name string
	at   int64 // ns; when that was
	engine.TubeStats
}

// survey tells of all tubes, in several turns. tell is called between them. The error is that
// of the context.
func (a *API) survey(ctx context.Context, tell func(t *surveyedTube)) error {
	batch := make([]surveyedTube, 0, perSurvey)
	for next, first := 0, true; first || next > 0; first = false {
		if !first {
			time.Sleep(breath)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		from := next
		next, batch = 0, batch[:0] // where the turns have ended
		// Its error is about changes that a sync did not make durable, which are none of ours.
		a.broker.Call(func(e *engine.Engine, now int64) {
			next = e.SurveyTubes(now, from, perSurvey, func(name string, st engine.TubeStats) {
				batch = append(batch, surveyedTube{name, now, st})
			})
		})
		for i := range batch {
			tell(&batch[i])
		}
	}
	return nil
}

// survey tells of all tubes that the client may see.
func (r *request) survey(tell func(t *surveyedTube)) error {
	all := r.who.Meets(statsEverywhere)
	if r.api.survey(r.http.Context(), func(t *surveyedTube) {
		if all || r.who.Meets(statsNamed, t.name) {
			tell(t)
		}
	}) != nil {
		return errGone
	}
	return nil
}
