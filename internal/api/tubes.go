package api

import (
	"encoding/base64"
	"net/http"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// inCursor encodes a tube name as a cursor that needs no escaping in a query.
var inCursor = base64.RawURLEncoding

// listTubes returns a page of the tubes that the client may see.
func (r *request) listTubes(in *admin.ListTubes) (page admin.Tubes, err error) {
	page, err = r.tubes().List(in)
	if in.Recent {
		for i := range page.Tubes {
			page.Tubes[i].Recent = r.api.history.recent(page.Tubes[i].Name)
		}
	}
	return page, err
}

// theTube returns the tube in the path. It must be called in a turn.
func (r *request) theTube(e *engine.Engine, now int64) (*tubes.Tube, error) {
	st, o := e.TubeStats(now, []byte(r.tube))
	if o != engine.OK {
		return nil, tubes.ErrNone(r.tube)
	}
	return &tubes.Tube{Name: r.tube, At: now, TubeStats: st, Most: e.LimitsOf(r.tube)}, nil
}

func (r *request) getTube(*admin.OfTube) (shown admin.Tube, err error) {
	err = r.turn(func(e *engine.Engine, now int64) error {
		t, err := r.theTube(e, now)
		if err != nil {
			return err
		}
		if shown = t.Shown(); t.Most != (engine.TubeLimits{}) {
			shown.Limit = &admin.Limit{Jobs: t.Most.Jobs, Bytes: t.Most.Bytes}
		}
		return nil
	})
	shown.Recent = r.api.history.recent(r.tube)
	if shown.Limit != nil && r.api.opt.LimitOf != nil {
		shown.Limit.From = r.api.opt.LimitOf(r.tube)
	}
	return shown, err
}

func (r *request) pauseTube(in *admin.PauseTube) (none admin.None, err error) {
	r.note("seconds", in.Seconds)
	return none, r.onTube(func(e *engine.Engine, now int64) engine.Outcome {
		return e.Pause(now, []byte(r.tube), in.Seconds)
	})
}

func (r *request) resumeTube(*admin.OfTube) (none admin.None, err error) {
	still := false
	err = r.onTube(func(e *engine.Engine, now int64) engine.Outcome {
		o := e.Pause(now, []byte(r.tube), 0)
		st, _ := e.TubeStats(now, []byte(r.tube))
		still = o == engine.OK && st.Pause > 0
		return o
	})
	if err == nil && still {
		err = problemf(http.StatusConflict, "%s is still paused by its policy: unset paused for the pattern that 'beanpole policy explain %s' shows", r.tube, r.tube)
	}
	return none, err
}

// onTube performs an action in a turn. The engine returns NotFound if the tube does not
// exist.
func (r *request) onTube(do func(e *engine.Engine, now int64) engine.Outcome) error {
	return r.turn(func(e *engine.Engine, now int64) error {
		o := do(e, now)
		if o == engine.NotFound {
			return tubes.ErrNone(r.tube)
		}
		return outcomeProblem(o)
	})
}
