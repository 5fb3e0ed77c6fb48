package api

import (
	"context"
	"math"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/task"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// maxTaskBytes is the maximum size of a request for a task. It is enough for the maximum
// number of ids.
const maxTaskBytes = 1 << 18

// listTasks returns the tasks of tubes that the client may manage.
func (r *request) listTasks(*admin.None) (admin.Tasks, error) {
	all := r.api.tasks.List(func(tube string) bool { return r.caller.Identity.Meets(manageNamed, tube) })
	for i := range all.Tasks {
		r.hideTube(&all.Tasks[i])
	}
	return all, nil
}

// hideTube removes the tube that receives the jobs of a task if the client has no right
// on it.
func (r *request) hideTube(t *admin.Task) {
	if t.To != "" && !r.caller.Identity.Meets(anyNamed, t.To) {
		t.To = ""
	}
}

// findTask returns a task, if the client may manage its tube.
func (r *request) findTask(id uint64) (*task.Task, error) {
	t, err := r.api.tasks.Find(id)
	if err == nil {
		err = r.permittedOn(manageNamed, "the tube of the task", t.Tube())
	}
	return t, err
}

// getTask returns the state of a task, at once or when the task has ended.
func (r *request) getTask(in *admin.GetTask) (shown admin.Task, err error) {
	t, err := r.findTask(in.Task)
	if err != nil {
		return shown, err
	}
	shown = t.Wait(r.ctx, in.Wait)
	r.hideTube(&shown)
	return shown, nil
}

// cancelTask cancels a task. Its changes remain.
func (r *request) cancelTask(in *admin.OfTask) (none admin.None, err error) {
	t, err := r.findTask(in.Task)
	if err != nil {
		return none, err
	}
	r.note("tube", t.Tube())
	return none, t.Cancel()
}

// startTask starts a change of many jobs of a tube: either the jobs with given ids, or
// the jobs in a state that match a search.
func (r *request) startTask(in *admin.StartTask) (shown admin.Task, err error) {
	if err := task.Check(in); err != nil {
		return shown, err
	}
	s, err := jobSearch(&admin.Search{Q: in.Q})
	if err == nil && !s.isAny() && in.IDs != nil {
		err = badRequest("want either ids or a search")
	}
	if err == nil && in.To != nil {
		err = r.permittedTo(*in.To, r.op.Needs)
	}
	if err == nil && !s.isAny() { // the number of matches would reveal the bodies
		err = r.permittedOn(bodiesNamed, "the tube "+r.tube+", for the bodies", r.tube)
	}
	if err != nil {
		return shown, err
	}
	about := admin.Task{Do: in.Do, Tube: r.tube, Search: !s.isAny(), To: op.Or(in.To, ""), State: op.Or(in.State, "")}
	if in.State != nil {
		r.note("state", about.State)
	}
	return r.api.tasks.Start(r.ctx, r.entry, about, in.Wait, func(ctx context.Context, t *task.Task) error {
		defer r.api.forget()
		own := *r // a copy, because the request ends before the task
		own.ctx = ctx
		work := taskWork{&own, in, s, t}
		ids, err := work.jobs()
		if err != nil {
			return err
		}
		return work.all(ids)
	})
}

// taskWork is the work of a task.
type taskWork struct {
	*request // has the context of the task
	in       *admin.StartTask
	search   *search
	task     *task.Task
}

// jobs returns the ids of the jobs to change. It collects all ids before the first
// change, so that no job is visited twice.
func (w *taskWork) jobs() (ids []uint64, err error) {
	most := uint64(math.MaxUint64)
	if w.in.Count != nil {
		most = uint64(*w.in.Count)
	}
	if w.in.IDs != nil {
		ids = *w.in.IDs
		return ids[:min(uint64(len(ids)), most)], nil
	}
	state, err := parseState(*w.in.State, allStates...)
	if err != nil {
		return nil, err
	}
	whole := jobScan{places: []place{{w.tube, state}}}
	if w.search.reads() {
		whole.bodies = searchedBytes
	}
	rd := w.reading()
	err = w.scan(&whole, func(slice []scannedJob) bool {
		if uint64(len(ids)) == most {
			return false
		}
		rd.each(slice, w.search, func(j *scannedJob, matches bool) bool {
			if matches && !(w.in.Count != nil && w.hasNoOrigin(&j.JobStats)) { // with a count, jobs that cannot be redriven do not count
				ids = append(ids, j.ID)
			}
			return uint64(len(ids)) < most
		})
		w.task.Update(func(t *admin.Task) {
			t.Looked += uint64(len(slice))
			t.Found = uint64(len(ids))
		})
		return true
	})
	return ids, err
}

// all changes the jobs.
func (w *taskWork) all(ids []uint64) error {
	w.task.Update(func(t *admin.Task) { t.Status, t.Found = task.Working, uint64(len(ids)) })
	states := task.States(w.in.Do)
	return each(w.request, ids, func(e *engine.Engine, now int64, id uint64) error {
		skipped, o := w.one(e, now, id, states)
		if err := outcomeProblem(o); err != nil {
			return err
		}
		w.task.Update(func(t *admin.Task) {
			if skipped != "" {
				t.Skipped[skipped]++
			} else {
				t.Done++
			}
		})
		return nil
	})
}

// one changes a job, unless the job has left the tube or the state.
func (w *taskWork) one(e *engine.Engine, now int64, id uint64, states []string) (skipped string, o engine.Outcome) {
	st, o := e.JobStats(now, id)
	is := st.State.String()
	switch {
	case o != engine.OK:
		return "gone", engine.OK
	case st.Tube != w.tube:
		return "in another tube", engine.OK
	case w.in.State != nil && is != *w.in.State || !slices.Contains(states, is):
		return is, engine.OK
	}
	switch {
	case w.hasNoOrigin(&st):
		return "without an origin", engine.OK
	case w.in.Do == "redrive" && w.in.To == nil && !w.caller.Identity.Meets(manageNamed, st.Origin):
		return "not permitted", engine.OK
	}
	if o = doTo(e, now, &st, w.in); o == engine.NotFound {
		return is, engine.OK
	}
	return "", o
}

// hasNoOrigin reports whether a job cannot be redriven because its origin is unknown.
func (w *taskWork) hasNoOrigin(st *engine.JobStats) bool {
	return w.in.Do == "redrive" && w.in.To == nil && st.Origin == ""
}

// doTo performs the action of a task on a job.
func doTo(e *engine.Engine, now int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome {
	switch in.Do {
	case "kick":
		return e.KickJob(now, st.ID)
	case "bury":
		return e.BuryJob(st.ID, op.Or(in.Priority, st.Pri))
	case "release":
		return e.ReleaseJob(now, st.ID, op.Or(in.Priority, st.Pri), op.Or(in.Delay, 0))
	case "redrive":
		return e.RedriveJob(now, st.ID, op.Or(in.To, ""))
	case "delete":
		return e.DeleteJob(st.ID)
	case "move":
		return e.MoveJob(now, st.ID, *in.To)
	}
	return e.AlterJob(now, st.ID, engine.Alteration{Pri: in.Priority, TTR: in.TTR, Delay: in.Delay})
}
