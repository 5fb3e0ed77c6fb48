package api

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// The states of a task.
const (
	taskLooks     = "looking"
	taskWorks     = "working"
	taskDone      = "done"
	taskCancelled = "cancelled"
	taskFailed    = "failed"
)

const (
	maxTasks     = 4       // that run at once
	tasksKept    = 100     // that have ended
	maxIDs       = 10_000  // of a task
	maxTaskBytes = 1 << 18 // of a request: so many ids with 20 digits
)

// tasks are those of an API.
type tasks struct {
	mu      sync.Mutex
	all     []*runningTask // the oldest first
	last    uint64         // id
	running int
	closed  bool
	group   sync.WaitGroup
}

// A runningTask is a task that runs, or has run.
type runningTask struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when it has ended

	admin.Task // guarded by tasks.mu
}

// start prepares a task, if there is room for one more, and returns what lets it run in the background.
// base is not cancelled.
func (t *tasks) start(base context.Context, one admin.Task, run func(ctx context.Context, task *runningTask)) (task *runningTask, begin func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == maxTasks || t.closed {
		return nil, nil, problemf(http.StatusServiceUnavailable, "%d tasks run already: wait until one of them ends, or cancel it", t.running).After(time.Second)
	}
	t.last++
	t.running++
	one.ID, one.Started, one.Status, one.Skipped = t.last, time.Now().UTC().Format(time.RFC3339), taskLooks, make(map[string]uint64)
	ctx, cancel := context.WithCancel(base)
	task = &runningTask{cancel: cancel, over: make(chan struct{}), Task: one}
	t.all = append(t.all, task)
	t.forget()
	begun := make(chan struct{})
	t.group.Go(func() {
		defer cancel()
		<-begun
		run(ctx, task)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running--
		close(task.over)
	})
	return task, func() { close(begun) }, nil
}

// forget drops the oldest tasks that have ended, if there are too many.
func (t *tasks) forget() {
	for i := 0; len(t.all) > tasksKept && i < len(t.all); {
		if t.all[i].Ended != "" {
			t.all = slices.Delete(t.all, i, i+1)
		} else {
			i++
		}
	}
}

// close cancels what runs, and waits until it has ended.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	for _, task := range t.all {
		task.cancel()
	}
	t.mu.Unlock()
	t.group.Wait()
}

// find returns a task, or nil.
func (t *tasks) find(id uint64) *runningTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range t.all {
		if task.ID == id {
			return task
		}
	}
	return nil
}

// change changes what is known of a task.
func (t *tasks) change(task *runningTask, f func(*admin.Task)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&task.Task)
}

// copy returns a task as it is. The caller holds tasks.mu.
func (task *runningTask) copy() admin.Task {
	one := task.Task
	one.Skipped = maps.Clone(task.Skipped)
	return one
}

// Close ends the tasks. It is to be called before the queue ends.
func (a *API) Close() {
	a.tasks.close()
	for _, other := range a.others {
		other.server.close()
	}
}

// listTasks tells of the tasks on tubes that the client may manage.
func (r *request) listTasks(*admin.None) (page admin.Tasks, err error) {
	t := r.work
	t.mu.Lock()
	defer t.mu.Unlock()
	page = admin.Tasks{Tasks: []admin.Task{}}
	for _, task := range slices.Backward(t.all) {
		if r.caller.Identity.Meets(manageNamed, task.Tube) {
			page.Tasks = append(page.Tasks, task.copy())
		}
	}
	return page, nil
}

// findTask returns the task that the path names, if the client may manage its tube.
func (r *request) findTask() (*runningTask, error) {
	task := r.work.find(r.task)
	if task == nil {
		return nil, problemf(http.StatusNotFound, "there is no task %d: those that have ended are forgotten after %d others", r.task, tasksKept)
	}
	return task, r.permittedOn(manageNamed, "the tube of the task", task.Tube)
}

// getTask tells of a task, at once or when it has ended.
func (r *request) getTask(in *admin.GetTask) (admin.Task, error) {
	task, err := r.findTask()
	if err != nil {
		return admin.Task{}, err
	}
	return r.wait(task, in.Wait), nil
}

// wait returns a task when it has ended, or as it is after so many seconds.
func (r *request) wait(task *runningTask, seconds int) admin.Task {
	late := time.NewTimer(time.Duration(seconds) * time.Second)
	defer late.Stop()
	select {
	case <-task.over:
	case <-late.C:
	case <-r.ctx.Done():
	}
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	return task.copy()
}

// cancelTask ends a task. What it has done stays done.
func (r *request) cancelTask(*admin.OfTask) (none admin.None, err error) {
	task, err := r.findTask()
	if err != nil {
		return none, err
	}
	r.note("tube", task.Tube)
	select {
	case <-task.over:
		return none, problemf(http.StatusConflict, "task %d had ended already", task.ID)
	default:
	}
	task.cancel()
	<-task.over
	return none, nil
}

// given returns the names of the members that are there of those that only some verbs take.
func given(in *admin.StartTask) (names []string) {
	for _, one := range []struct {
		name  string
		there bool
	}{{"to", in.To != nil}, {"priority", in.Priority != nil}, {"delay", in.Delay != nil}, {"ttr", in.TTR != nil}} {
		if one.there {
			names = append(names, one.name)
		}
	}
	return names
}

// A bulkVerb is what a task does to each job.
type bulkVerb struct {
	takes  []string       // members of the request
	states []engine.State // in which jobs may be
	do     func(e *engine.Engine, now int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome
}

var (
	kickable = []engine.State{engine.Buried, engine.Delayed}
	buriable = []engine.State{engine.Ready, engine.Delayed, engine.Reserved}
	held     = []engine.State{engine.Reserved}
	free     = []engine.State{engine.Ready, engine.Delayed, engine.Buried}
)

var bulkVerbs = map[string]bulkVerb{
	"kick": {nil, kickable, func(e *engine.Engine, now int64, st *engine.JobStats, _ *admin.StartTask) engine.Outcome {
		return e.KickJob(now, st.ID)
	}},
	"bury": {[]string{"priority"}, buriable, func(e *engine.Engine, _ int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome {
		return e.BuryJob(st.ID, valueOr(in.Priority, st.Pri))
	}},
	"release": {[]string{"priority", "delay"}, held, func(e *engine.Engine, now int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome {
		return e.ReleaseJob(now, st.ID, valueOr(in.Priority, st.Pri), valueOr(in.Delay, 0))
	}},
	"delete": {nil, free, func(e *engine.Engine, _ int64, st *engine.JobStats, _ *admin.StartTask) engine.Outcome {
		return e.DeleteJob(st.ID)
	}},
	"move": {[]string{"to"}, free, func(e *engine.Engine, now int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome {
		return e.MoveJob(now, st.ID, *in.To)
	}},
	"change": {[]string{"priority", "delay", "ttr"}, free, func(e *engine.Engine, now int64, st *engine.JobStats, in *admin.StartTask) engine.Outcome {
		return e.AlterJob(now, st.ID, engine.Alteration{Pri: in.Priority, TTR: in.TTR, Delay: in.Delay})
	}},
}

// mostOf returns how many jobs the task is about at most.
func mostOf(in *admin.StartTask) uint64 {
	if in.Count == nil {
		return math.MaxUint64
	}
	return uint64(*in.Count)
}
