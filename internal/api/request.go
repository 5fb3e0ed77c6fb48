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

// A request is one that is being served, however it came.
type request struct {
	api    *API
	op     *operation
	ctx    context.Context
	caller access.Caller
	source source
	entry  *audit.Entry

	http       bool // it came by HTTP: an answer of the leader need not be read
	fromMember bool

	upstream *upstream // that is to do it; nil: this server

	// Of the first turn; nil: there was none yet. What a turn finds, such as a view of the jobs of a tube, means something to its engine
	// only. So the request is over when the broker has another one.
	engine *engine.Engine

	// What the path names, as far as it does.
	tube       string
	job        uint64
	connection uint64

	refused []string // the tubes on which rights are lacking, for the log
}

// run does what is asked for by somebody who is known. It is the only way to an operation.
func (r *request) run() (out any, err error) {
	in := reflect.New(r.op.in).Interface()
	server := ""
	if r.upstream != nil {
		server = r.upstream.name
	}
	r.entry = r.api.changes.Begin(&r.caller, r.op.ID, server)
	if r.op.changes() {
		r.ctx = audit.With(r.ctx, r.entry)
	}
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
		err = r.source.body(in, r.room)
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

// room is that of the operation, at this server.
func (r *request) room(length int64) (most int64, err error) {
	if r.op.Room == nil || r.upstream != nil {
		return 0, nil
	}
	return r.op.Room(r, length)
}

// problemOf makes a problem of a mistake in the input.
func problemOf(err error) error {
	if m, ok := errors.AsType[*op.Mistake](err); ok {
		return problemf(m.Status, "%s", m.Detail)
	}
	return err
}

// path reads what the path names.
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

// turn runs f within a turn of the broker and returns when what it has changed is
// durable. It is the only way to the engine.
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
	case !called || deposed && !r.op.changes(): // what was seen may never have been
		return errNotLeading
	case deposed:
		return problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed: what was asked for may have happened")
	case err != nil && r.op.changes():
		return problemf(http.StatusInternalServerError, "it is done, but could not be written to the journal: a restart may undo it; the log of the server has the reason")
	}
	return nil
}

// errNotLeading is the answer to what was not done because this server may not decide at the moment, or not go on with what it
// has decided before.
var errNotLeading error = problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed, and nothing more was done: try again").After(time.Second)

// turns runs a step in as many turns as it wants, unless the client goes.
func (r *request) turns(step func(e *engine.Engine, now int64) (more bool, err error)) error {
	return r.turnsUntil(step, func() bool { return true })
}

// turnsUntil is turns, and calls between after each of them; it ends when that returns false.
func (r *request) turnsUntil(step func(e *engine.Engine, now int64) (more bool, err error), between func() bool) error {
	err := r.api.throttle.turns(r.ctx, r.turn, step, between)
	if err != nil && admin.StatusOf(err) == 0 {
		return errGone
	}
	return err
}

// errGone is the answer to a client that has gone, for the log.
var errGone = problemf(http.StatusServiceUnavailable, "the connection has ended before all was done")

// perTurn is how many things a turn tells at most, be they jobs, tubes or connections.
const perTurn = 250

// each calls do with all things of a list, with several in a turn but not with too many, until there is an error.
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

// note adds to what is written down of a change.
func (r *request) note(name string, value any) { r.entry.Note(name, value) }

// permitted asks for the rights that an operation needs, unless they are on the tube of a job,
// which only a turn knows, or on a tube that is yet to be read from the body.
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

// permittedJob asks for rights on the tube of the job that the path names. Somebody without
// them is not told which tube that is. A job that does not exist needs none.
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

// permittedOn asks for rights on tubes, of which the answer speaks as where.
func (r *request) permittedOn(n rights.Need, where string, tubes ...string) error {
	if r.caller.Identity.Meets(n, tubes...) {
		return nil
	}
	r.refused = tubes
	which := "the right"
	if n.OneOf {
		which = "one of the rights"
	}
	return problemf(http.StatusForbidden, "%s needs %s %s on %s", r.op.ID, which, n.Rights, where)
}

const (
	shortList = 1000 // jobs; a longer list is a walk
)

// badCursor is the answer to a cursor that came with no page.
func badCursor() error {
	return badRequest("%v", list.ErrCursor)
}

// parseState reads the name of a state.
func parseState(text string, of ...engine.State) (engine.State, error) {
	for _, s := range of {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, badRequest("state: want one of %v", of)
}
