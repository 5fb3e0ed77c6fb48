package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A request is a request that is being served, over HTTP or within the process.
type request struct {
	api    *API
	op     *operation
	ctx    context.Context
	caller access.Caller
	source source
	entry  *audit.Entry
	upload *upload // nil for a request of the console

	fromMember bool

	upstream *upstream // server that serves the request; nil for this server

	// engine is the engine of the first turn, or nil before that turn. Results of a turn,
	// such as a view of a tube, are valid only for its engine. So the request fails if
	// the broker gets another engine.
	engine *engine.Engine

	// The values in the path.
	tube       string
	job        uint64
	connection uint64

	refused []string // tubes on which the client lacks rights, for the log
}

// run performs the operation for an identified client. All operations run through it.
func (r *request) run() (out any, err error) {
	in := reflect.New(r.op.in).Interface()
	server := ""
	if r.upstream != nil {
		server = r.upstream.name
	}
	r.entry = r.api.changes.Begin(&r.caller, r.op.ID, server)
	if out, done, err := r.relay(in); done {
		return out, problemOf(err)
	}
	if err := r.path(in); err != nil {
		return nil, problemOf(err)
	}
	if err = r.permitted(); err == nil {
		err = r.source.query(in)
	}
	if err == nil {
		err = r.source.body(in)
	}
	if err == nil {
		if r.upstream != nil {
			out, err = r.upstream.do(r, in)
		} else {
			out, err = r.op.do(r, in)
		}
	}
	err = problemOf(err)
	if admin.StatusOf(err) == http.StatusForbidden {
		r.api.opt.Server.Refused(r.caller.Address, r.caller.Identity.Name(), r.op.ID, r.refused...)
	} else if r.op.changes() {
		r.entry.Write(err)
		r.api.forget()
	}
	return out, err
}

// problemOf returns the problem for a mistake in the input.
func problemOf(err error) error {
	if m, ok := errors.AsType[*op.BindError](err); ok {
		return problemf(m.Status, "%s", m.Detail)
	}
	return err
}

// path parses the path.
func (r *request) path(in any) error {
	if err := r.source.path(in); err != nil {
		return err
	}
	for i := range r.op.plan.Fields {
		f := &r.op.plan.Fields[i]
		if f.Place != op.Path {
			continue
		}
		switch of := f.Of(in); f.Name {
		case "tube":
			if r.tube = of.String(); checkTube(r.tube) != nil {
				return checkTube(r.tube)
			}
		case "job":
			r.job = of.Uint()
		case "connection":
			r.connection = of.Uint()
		}
		r.note(f.Name, f.Of(in).Interface())
	}
	return nil
}

// turn runs f in a turn of the broker. It returns when the changes of f are durable. Only
// turn gives access to the engine.
func (r *request) turn(f func(e *engine.Engine, now int64) error) error {
	var refused error
	called := false
	err := r.api.broker.Call(func(e *engine.Engine, now int64) {
		if r.engine == nil {
			r.engine = e
		}
		if called = e == r.engine; !called {
			return
		}
		if refused = r.permittedJob(e); refused == nil {
			refused = f(e, now)
		}
	})
	deposed := errors.Is(err, broker.ErrDeposed)
	switch {
	case refused != nil:
		return refused
	case !called || deposed && !r.op.changes(): // the result can be invalid
		return errNotLeading
	case deposed:
		return problemf(http.StatusServiceUnavailable, "this server no longer leads the cluster; the requested change might have been made")
	case err != nil && r.op.changes():
		return problemf(http.StatusInternalServerError, "the change was made, but could not be written to the journal: a restart can undo it; the log of the server has the reason")
	}
	return nil
}

// errNotLeading means that this server is no longer the leader, so that it can neither
// start nor continue the operation.
var errNotLeading error = problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed: the operation stopped; try again").After(time.Second)

// turns runs a step in as many turns as needed, unless the client disconnects.
func (r *request) turns(step func(e *engine.Engine, now int64) (more bool, err error)) error {
	return r.turnsUntil(step, func() bool { return true })
}

// turnsUntil is like turns. It calls between after each turn, and stops if between
// returns false.
func (r *request) turnsUntil(step func(e *engine.Engine, now int64) (more bool, err error), between func() bool) error {
	err := r.api.throttle.turns(r.ctx, r.turn, step, between)
	if err != nil && admin.StatusOf(err) == 0 {
		return errGone
	}
	return err
}

// errGone is the result for a client that has disconnected. It is only logged.
var errGone = problemf(http.StatusServiceUnavailable, "the client disconnected before the end")

// perTurn is the maximum number of jobs, tubes or connections that a turn returns.
const perTurn = 250

// each calls do for the elements of a list, a limited number in each turn, until do
// returns an error.
func each[T any](r *request, list []T, do func(e *engine.Engine, now int64, x T) error) error {
	return r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		for n := 0; len(list) > 0 && n < perTurn && (n == 0 || !e.Spent()); n++ {
			if err := do(e, now, list[0]); err != nil {
				return false, err
			}
			list = list[1:]
		}
		return len(list) > 0, nil
	})
}

// note adds an attribute to the audit entry of the change.
func (r *request) note(name string, value any) { r.entry.Note(name, value) }

// permitted checks the rights that the operation requires, except rights on the tube of a
// job, which only a turn can look up, and on a tube in the body.
func (r *request) permitted() error {
	if r.upstream != nil {
		return r.upstream.permitted(r)
	}
	switch r.op.Needs.Place {
	case rights.TubeOfJob:
		return nil
	case rights.NamedTube, rights.TwoTubes:
		return r.permittedOn(r.op.Needs, "the tube "+r.tube, r.tube)
	case rights.SomeTube:
		return r.permittedOn(r.op.Needs, "some tube")
	}
	return r.permittedOn(r.op.Needs, "every tube")
}

// permittedJob checks the rights on the tube of the job. The error does not contain the
// name of the tube. For a job that does not exist, no rights are required.
func (r *request) permittedJob(e *engine.Engine) error {
	if r.op.Needs.Place != rights.TubeOfJob {
		return nil
	}
	tube, ok := e.TubeOf(r.job)
	if !ok {
		return problemf(http.StatusNotFound, "there is no job %d", r.job)
	}
	return r.permittedOn(r.op.Needs, fmt.Sprintf("the tube of job %d", r.job), tube)
}

// permittedOn checks rights on tubes. where is the description of the tubes in the error.
func (r *request) permittedOn(n rights.Need, where string, tubes ...string) error {
	if r.caller.Identity.Meets(n, tubes...) {
		return nil
	}
	r.refused = tubes
	return problemf(http.StatusForbidden, "%s needs %s on %s", r.op.ID, n, where)
}

const (
	shortList = 1000 // number of jobs; a longer list is a scan
)

// badCursor returns the error for a cursor that does not come from a page.
func badCursor() error {
	return badRequest("%v", list.ErrCursor)
}

// parseState parses the name of a state.
func parseState(text string, of ...engine.State) (engine.State, error) {
	for _, s := range of {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, badRequest("state: want one of %v", of)
}
