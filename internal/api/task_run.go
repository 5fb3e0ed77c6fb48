package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// startTask begins work on many jobs of a tube: those that are named, or those in a state, all or
// only some by their bodies.
func (r *request) startTask(in *admin.StartTask) (task admin.Task, err error) {
	job := &taskRun{request: r, in: in}
	if err := job.check(); err != nil {
		return task, err
	}
	if err := job.permitted(); err != nil {
		return task, err
	}
	return job.begin(func(context.Context) error { return job.all() })
}

// begin begins a task whose work is done in the background.
func (t *taskRun) begin(work func(ctx context.Context) error) (shown admin.Task, err error) {
	about, r := t.describe(), t.request
	own := *r // the request is over when this is answered
	own.ctx, own.notes = context.WithoutCancel(r.ctx), nil
	if r.other != nil {
		own.note("server", r.other.name)
	}
	t.request = &own
	task, begin, err := r.work.start(own.ctx, about, func(ctx context.Context, task *runningTask) { t.run(ctx, task, work) })
	if err != nil {
		return shown, err
	}
	shown = task.copy()
	r.after = func(out any) any {
		begin()
		if t.in.Wait > 0 {
			out = r.wait(task, t.in.Wait)
		}
		return out
	}
	r.note("task", shown.ID)
	r.note("do", t.in.Do)
	return shown, nil
}

// A taskRun is a task with what it needs.
type taskRun struct {
	*request // its context is that of the task while it runs
	in       *admin.StartTask
	verb     bulkVerb
	state    engine.State // 0: the jobs are named
	match    bodyMatch
	task     *runningTask
}

// check reads what is asked for.
func (t *taskRun) check() (err error) {
	in, ok := t.in, false
	if t.verb, ok = bulkVerbs[in.Do]; !ok {
		return problemf(http.StatusBadRequest, "do: want one of %v", slices.Sorted(maps.Keys(bulkVerbs)))
	}
	for _, name := range given(in) {
		if !slices.Contains(t.verb.takes, name) {
			return problemf(http.StatusBadRequest, "%s does not take %s", in.Do, name)
		}
	}
	switch {
	case in.Do == "change" && len(given(in)) == 0:
		return errNothingToChange
	case in.Do == "move" && in.To == nil:
		return problemf(http.StatusBadRequest, "to: want the name of a tube")
	case in.To != nil && *in.To == t.tube:
		return problemf(http.StatusBadRequest, "to: that is the tube where they are")
	case (in.State == nil) == (in.IDs == nil):
		return problemf(http.StatusBadRequest, "want one of state and ids")
	case in.IDs != nil && len(*in.IDs) > maxIDs:
		return problemf(http.StatusBadRequest, "ids: want %d at most", maxIDs)
	}
	if in.State != nil {
		if t.state, err = parseState(*in.State, t.verb.states...); err != nil {
			return err
		}
		if t.state == engine.Buried && in.Delay != nil {
			return problemf(http.StatusBadRequest, "delay: a buried job has none: kick it")
		}
	}
	by := bodySearch{in.Text, in.Regexp, in.Pointer, in.Equals}
	if t.match, err = by.match(); err == nil && t.match != nil && in.IDs != nil {
		err = problemf(http.StatusBadRequest, "ids: there is a search, too: want one of them")
	}
	return err
}

// permitted asks for the rights that the operation alone does not need: on the other tube, and to
// see the bodies, for their number would tell of them.
func (t *taskRun) permitted() error {
	if t.in.To != nil {
		if err := t.permittedTo(*t.in.To, t.op.Needs); err != nil {
			return err
		}
	}
	if t.match != nil {
		return t.permittedOn(bodiesNamed, "the tube "+t.tube+", for the bodies", t.tube)
	}
	return nil
}

// describe returns the task as it is shown.
func (t *taskRun) describe() admin.Task {
	one := admin.Task{Do: t.in.Do, Tube: t.tube, Search: t.match != nil, Identity: t.caller.Identity.Name()}
	if t.state != 0 {
		one.State = t.state.String()
		t.note("state", t.state)
	}
	if t.in.To != nil {
		one.To = *t.in.To
	}
	return one
}

// run does the task, and says in the log what came of it.
func (t *taskRun) run(ctx context.Context, task *runningTask, work func(ctx context.Context) error) {
	t.ctx, t.task = ctx, task
	err, result := work(ctx), "ok"
	t.work.change(task, func(one *admin.Task) {
		one.Ended = time.Now().UTC().Format(time.RFC3339)
		switch {
		case err == nil:
			one.Status = taskDone
		case ctx.Err() != nil:
			one.Status, result = taskCancelled, taskCancelled
		default:
			one.Status, one.Problem, result = taskFailed, err.Error(), err.Error()
		}
		t.note("task", one.ID)
		t.note("tube", one.Tube)
		t.note("do", one.Do)
		t.note("count", one.Done)
	})
	t.api.surveys.forget()
	t.record("endTask", result)
}

// all looks for the jobs first, and then does what is asked for to each: so none is met twice.
func (t *taskRun) all() error {
	ids, err := t.jobs()
	if err != nil {
		return err
	}
	t.work.change(t.task, func(one *admin.Task) { one.Status, one.Found = taskWorks, uint64(len(ids)) })
	return t.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		done, skipped := uint64(0), make(map[string]uint64)
		for n := 0; len(ids) > 0 && n < perTurn && (n == 0 || !e.Spent()); n++ {
			why, o := t.one(e, now, ids[0])
			if err = outcomeProblem(o); err != nil {
				break
			}
			if why != "" {
				skipped[why]++
			} else {
				done++
			}
			ids = ids[1:]
		}
		t.work.change(t.task, func(one *admin.Task) {
			one.Done += done
			for why, n := range skipped {
				one.Skipped[why] += n
			}
		})
		return len(ids) > 0, err
	})
}

// jobs returns the ids of the jobs that the task is about.
func (t *taskRun) jobs() (ids []uint64, err error) {
	if t.in.IDs != nil {
		ids = *t.in.IDs
		return ids[:min(uint64(len(ids)), mostOf(t.in))], nil
	}
	w := jobWalk{places: []place{{t.tube, t.state}}}
	if t.match != nil {
		w.bodies = searchedBytes
	}
	rd := t.reading()
	err = t.walk(&w, func(slice []walkedJob) bool {
		if uint64(len(ids)) == mostOf(t.in) {
			return false
		}
		rd.each(slice, t.match, func(j *walkedJob, matches bool) bool {
			if matches {
				ids = append(ids, j.ID)
			}
			return uint64(len(ids)) < mostOf(t.in)
		})
		t.work.change(t.task, func(one *admin.Task) {
			one.Looked += uint64(len(slice))
			one.Found = uint64(len(ids))
		})
		return true
	})
	return ids, err
}

// one does what is asked for to a job, unless something has happened to it meanwhile.
func (t *taskRun) one(e *engine.Engine, now int64, id uint64) (skipped string, o engine.Outcome) {
	st, o := e.JobStats(now, id)
	switch {
	case o != engine.OK:
		return "gone", engine.OK
	case st.Tube != t.tube:
		return "in another tube", engine.OK
	case t.state != 0 && st.State != t.state || !slices.Contains(t.verb.states, st.State):
		return st.State.String(), engine.OK
	}
	if o = t.verb.do(e, now, &st, t.in); o == engine.NotFound {
		return st.State.String(), engine.OK
	}
	return "", o
}
