package api

import (
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// tubeAt tells of a tube; ok is false if there is none.
func tubeAt(e *engine.Engine, now int64, name string) (t admin.Tube, ok bool) {
	st, o := e.TubeStats(now, []byte(name))
	return tubes.Shown(name, &st), o == engine.OK
}

// inCursor is how the name of a tube is a cursor: some of its characters mean something
// in a query, and a script should not have to know.
var inCursor = base64.RawURLEncoding

// listTubes tells of the tubes that the client may see, by name unless another order or a
// filter is asked for. The cursor is the name of the last.
func (r *request) listTubes(in *admin.ListTubes) (page admin.Tubes, err error) {
	if in.Sort != "" || in.Q != "" || in.Has != "" {
		page, err = r.seen().List(in)
		if in.Recent {
			r.api.history.addRecent(page.Tubes)
		}
		return page, err
	}
	after, err := inCursor.DecodeString(in.Cursor)
	if err != nil || inCursor.EncodeToString(after) != in.Cursor {
		return page, badCursor()
	}
	var all engine.Names
	err = r.turn(func(e *engine.Engine, _ int64) error {
		all = e.TubeNames()
		return nil
	})
	if err != nil {
		return page, err
	}
	page.Tubes = []admin.Tube{}
	names, more := r.namesAfter(all, string(after), in.Limit)
	if more {
		page.Next = inCursor.EncodeToString([]byte(names[in.Limit-1]))
	}
	err = each(r, names, func(e *engine.Engine, now int64, name string) error {
		if t, ok := tubeAt(e, now, name); ok {
			page.Tubes = append(page.Tubes, t)
		}
		return nil
	})
	if in.Recent {
		r.api.history.addRecent(page.Tubes)
	}
	return page, err
}

// namesAfter returns the first n names after one, of those that the client may see, and
// whether there are more.
func (r *request) namesAfter(all engine.Names, after string, n int) (names []string, more bool) {
	for i := range all.Len() {
		if name := all.At(i); name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	seen := names[:0]
	for _, name := range names {
		if !r.caller.Identity.Meets(statsNamed, name) {
			continue
		}
		if len(seen) == n {
			return seen, true
		}
		seen = append(seen, name)
	}
	return seen, false
}

func (r *request) getTube(*admin.OfTube) (t admin.Tube, err error) {
	err = r.turn(func(e *engine.Engine, now int64) error {
		var ok bool
		if t, ok = tubeAt(e, now, r.tube); !ok {
			return tubes.ErrNone(r.tube)
		}
		if l := e.LimitsOf(r.tube); l != (engine.TubeLimits{}) {
			t.Limit = &admin.Limit{Jobs: l.Jobs, Bytes: l.Bytes}
		}
		return nil
	})
	if t.Limit != nil && r.api.opt.LimitOf != nil {
		t.Limit.From = r.api.opt.LimitOf(r.tube)
	}
	return t, err
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
		o := e.Resume(now, []byte(r.tube))
		st, _ := e.TubeStats(now, []byte(r.tube))
		still = o == engine.OK && st.Pause > 0
		return o
	})
	if err == nil && still {
		err = problemf(http.StatusConflict, "%s is still paused, by its policy: unset paused for the pattern that 'beanpole policy explain %s', or its page, names", r.tube, r.tube)
	}
	return none, err
}

// onTube does in a turn what may be NotFound because there is no such tube.
func (r *request) onTube(do func(e *engine.Engine, now int64) engine.Outcome) error {
	return r.turn(func(e *engine.Engine, now int64) error {
		o := do(e, now)
		if o == engine.NotFound {
			return tubes.ErrNone(r.tube)
		}
		return outcomeProblem(o)
	})
}
