// Package task runs changes of many jobs that continue after the reply to their request.
//
// A request starts a task if fewer than four run, and fewer than three of its client. The
// start is recorded in the audit, and a goroutine does the work. The work first collects
// the jobs, and then changes each of them, in turns that leave time for clients. It
// updates the state of the task, which clients can read at once or at the end. A client
// that cancels a task waits for its end. A task ends as done, failed or cancelled, which
// is recorded as well. The last hundred finished tasks are kept. Changes of a cancelled
// task remain. No task survives the process.
//
// Package api defines the work; the Runner does not depend on it.
package task

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
)

// The states of a running task.
const (
	looking   = "looking"
	Working   = "working" // the jobs are collected
	done      = "done"
	cancelled = "cancelled"
	failed    = "failed"
)

const (
	Most  = 4        // maximum number of tasks that run at the same time
	Share = Most - 1 // maximum number of these that one client has started
	Kept  = 100      // number of finished tasks that are kept
)

// A Runner runs the tasks of a server. Its zero value is ready for use. Close stops its
// goroutines.
type Runner struct {
	// After is the number after which ids start. It differs between the members of a
	// cluster, so that an id refers to the same task after a change of leader. It must
	// not change after the first Start.
	After uint64

	mu      sync.Mutex
	all     []*Task // oldest first
	last    uint64  // last id, counted from After
	running int
	closed  bool
	group   sync.WaitGroup
}

// A Task is a running or finished task.
type Task struct {
	runner *Runner
	cancel context.CancelFunc
	owner  string        // client that started the task
	over   chan struct{} // closed when the task has ended
	shown  admin.Task    // guarded by Runner.mu
}

// Start starts a task for a change. The task continues when ctx ends. Start returns the
// state of the task when it has ended, or after the given seconds.
func (r *Runner) Start(ctx context.Context, entry *audit.Entry, about admin.Task, seconds int, work func(ctx context.Context, t *Task) error) (admin.Task, error) {
	about.Identity = entry.Identity()
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t, err := r.add(about, entry.Share(), cancel)
	if err != nil {
		cancel()
		return about, err
	}
	begun := t.Shown()
	entry.Note("task", begun.ID)
	entry.Note("do", begun.Do)
	entry.Write(nil) // records the start before the first change
	end := entry.Then("endTask")
	go func() {
		defer r.group.Done()
		defer cancel()
		t.end(work(own, t), own.Err() != nil, end)
	}()
	if seconds > 0 {
		return t.Wait(ctx, seconds), nil
	}
	return begun, nil
}

// add adds a task, unless too many run.
func (r *Runner) add(about admin.Task, owner string, cancel context.CancelFunc) (*Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := 0
	for _, t := range r.all {
		if t.owner == owner && t.shown.Ended == "" {
			own++
		}
	}
	if r.running == Most || own == Share || r.closed {
		return nil, admin.Problemf(http.StatusServiceUnavailable, "too many running tasks (%d, of which %d are yours); wait for one to end, or cancel it", r.running, own).After(time.Second)
	}
	r.last++
	r.running++
	r.group.Add(1)
	about.ID, about.Started, about.Status, about.Skipped = r.After+r.last, now(), looking, make(map[string]uint64)
	t := &Task{runner: r, cancel: cancel, owner: owner, over: make(chan struct{}), shown: about}
	r.all = append(r.all, t)
	r.forget()
	return t, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// forget drops the oldest finished tasks if there are too many.
func (r *Runner) forget() {
	for len(r.all) > Kept { // most have ended
		i := slices.IndexFunc(r.all, func(t *Task) bool { return t.shown.Ended != "" })
		r.all = slices.Delete(r.all, i, i+1)
	}
}

// end sets and records the result of the task.
func (t *Task) end(err error, isCancelled bool, entry *audit.Entry) {
	t.Update(func(shown *admin.Task) {
		shown.Ended = now()
		switch {
		case err == nil:
			shown.Status = done
		case isCancelled:
			shown.Status, err = cancelled, errors.New(cancelled)
		default:
			shown.Status, shown.Problem = failed, err.Error()
		}
		entry.Note("task", shown.ID)
		entry.Note("tube", shown.Tube)
		entry.Note("do", shown.Do)
		entry.Note("count", shown.Done)
	})
	entry.Write(err)
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	t.runner.running--
	close(t.over)
}

// Update changes the state of a task.
func (t *Task) Update(f func(shown *admin.Task)) {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	f(&t.shown)
}

// Shown returns the state of a task.
func (t *Task) Shown() (shown admin.Task) {
	t.Update(func(now *admin.Task) {
		shown = *now
		shown.Skipped = maps.Clone(now.Skipped)
	})
	return shown
}

// Wait returns the state of a task when it has ended, or after the given number of
// seconds.
func (t *Task) Wait(ctx context.Context, seconds int) admin.Task {
	late := time.NewTimer(time.Duration(seconds) * time.Second)
	defer late.Stop()
	select {
	case <-t.over:
	case <-late.C:
	case <-ctx.Done():
	}
	return t.Shown()
}

// Cancel cancels a task.
func (t *Task) Cancel() error {
	select {
	case <-t.over:
		return admin.Problemf(http.StatusConflict, "task %d has already ended", t.shown.ID)
	default:
	}
	t.cancel()
	<-t.over
	return nil
}

// List returns the tasks on tubes for which may returns true, newest first.
func (r *Runner) List(may func(tube string) bool) admin.Tasks {
	r.mu.Lock()
	all := slices.Clone(r.all)
	r.mu.Unlock()
	page := admin.Tasks{Tasks: []admin.Task{}}
	for _, t := range slices.Backward(all) {
		if may(t.shown.Tube) {
			page.Tasks = append(page.Tasks, t.Shown())
		}
	}
	return page
}

// Find returns a task.
func (r *Runner) Find(id uint64) (*Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.all {
		if t.shown.ID == id {
			return t, nil
		}
	}
	if id <= r.After || id > r.After+r.last {
		return nil, admin.Problemf(http.StatusNotFound, "this server has no task %d: tasks, finished or not, are lost when the server restarts or the cluster's leader changes; "+
			"its changes remain: check the jobs before you repeat the request", id)
	}
	return nil, admin.Problemf(http.StatusNotFound, "task %d is no longer stored; the server keeps the last %d", id, Kept)
}

// Tube returns the tube whose jobs the task changes.
func (t *Task) Tube() string { return t.shown.Tube }

// Close cancels all tasks and waits for their end. After that, no task can start.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, t := range r.all {
		t.cancel()
	}
	r.mu.Unlock()
	r.group.Wait()
}
