package api

import (
	"math"
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// What is done with many jobs of a tube takes as many turns as it needs. It answers with
// how many were done, also if it was refused the rest.

type kicked struct {
	Kicked uint64 `json:"kicked"`
}

type deleted struct {
	Deleted uint64 `json:"deleted"`
}

type moved struct {
	Moved uint64 `json:"moved"`
}

func kickTube(r *request) (reply, error) {
	var in struct {
		State string  `json:"state"`
		Count *uint32 `json:"count"`
	}
	if err := r.decode(&in, true); err != nil {
		return reply{}, err
	}
	from := engine.Buried
	if in.State != "" {
		var err error
		if from, err = parseState(in.State, engine.Buried, engine.Delayed); err != nil {
			return reply{}, err
		}
	}
	r.note("state", from)
	var k engine.Kick
	done, err := r.sweep(
		func(e *engine.Engine) (o engine.Outcome) {
			k, o = e.BeginKickTube([]byte(r.tube), from, valueOr(in.Count, math.MaxUint32))
			return o
		},
		func(e *engine.Engine, now int64) (bool, uint64, engine.Outcome) {
			more := e.ContinueKick(now, &k)
			return more, uint64(k.Kicked), k.Refused
		})
	return reply{body: kicked{done}}, err
}

func clearTube(r *request) (reply, error) {
	var in struct {
		State string  `json:"state"`
		Count *uint32 `json:"count"`
	}
	if err := r.decode(&in, false); err != nil {
		return reply{}, err
	}
	done, err := r.sweepState(in.State, in.Count, func(e *engine.Engine, state engine.State) (engine.Sweep, engine.Outcome) {
		return e.BeginClear([]byte(r.tube), state)
	})
	return reply{body: deleted{done}}, err
}

func moveJobs(r *request) (reply, error) {
	var in struct {
		State string  `json:"state"`
		To    string  `json:"to"`
		Count *uint32 `json:"count"`
	}
	if err := r.decode(&in, false); err != nil {
		return reply{}, err
	}
	if in.To == r.tube {
		return reply{}, problemf(http.StatusBadRequest, "to: that is the tube where they are")
	}
	if err := r.permittedTo(in.To, r.op.need); err != nil {
		return reply{}, err
	}
	done, err := r.sweepState(in.State, in.Count, func(e *engine.Engine, state engine.State) (engine.Sweep, engine.Outcome) {
		return e.BeginMove([]byte(r.tube), []byte(in.To), state)
	})
	return reply{body: moved{done}}, err
}

// sweepState sweeps the jobs of a state, which nobody holds: the first count of them, if
// that is given.
func (r *request) sweepState(name string, count *uint32, begin func(*engine.Engine, engine.State) (engine.Sweep, engine.Outcome)) (done uint64, err error) {
	state, err := parseState(name, engine.Ready, engine.Delayed, engine.Buried)
	if err != nil {
		return 0, err
	}
	r.note("state", state)
	var w engine.Sweep
	return r.sweep(
		func(e *engine.Engine) (o engine.Outcome) {
			w, o = begin(e, state)
			if count != nil {
				w.AtMost(uint64(*count))
			}
			return o
		},
		func(e *engine.Engine, now int64) (bool, uint64, engine.Outcome) {
			more := e.ContinueSweep(now, &w)
			return more, w.Done, w.Refused
		})
}

// sweep begins something in one turn and goes on with it in others. goOn tells whether
// there is more, how many jobs were done, and why the next was refused.
func (r *request) sweep(begin func(*engine.Engine) engine.Outcome, goOn func(e *engine.Engine, now int64) (bool, uint64, engine.Outcome)) (done uint64, err error) {
	begun := false
	err = r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		if !begun {
			begun = true
			if begin(e) != engine.OK {
				return false, r.noTube()
			}
		}
		more, n, refused := goOn(e, now)
		done = n
		return more, outcomeProblem(refused)
	})
	r.note("count", done)
	if err != nil {
		err = partly(err, done)
	}
	return done, err
}
