// Package task runs work on many jobs that goes on after its request was answered.
//
// A request starts a task if fewer than four run, and fewer than three of the same identity or address; that is written down, and its work begins in a goroutine of its own. The work
// first looks for the jobs that it is about and then does something to each of them, in turns that leave time for others, and
// tells the task how far it is. Whoever asks sees that, at once or when the task has ended; whoever cancels it waits until it has.
// A task ends as done, failed or cancelled, which is written down, too, and is remembered until a hundred others have ended
// after it. What a task has done stays done; nothing of it survives the process.
//
// What runs the work and what the work does are strangers to each other: so tasks of this server and tasks on the jobs of a
// beanstalkd are the same.
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

// The states of a task.
const (
	looking   = "looking"
	Working   = "working" // it knows the jobs
	done      = "done"
	cancelled = "cancelled"
	failed    = "failed"
)

const (
	Most  = 4   // that run at once
	Share = 3   // of these, of one identity or address
	Kept  = 100 // that have ended
)

// A Runner has the tasks on the jobs of a server. Its zero value is ready for use; Close ends its goroutines.
type Runner struct {
	// After is the number after which ids begin. The members of a cluster have different
	// ones, so that no id means another task at the next leader. It must not change once a
	// task has started.
	After uint64

	mu      sync.Mutex
	all     []*Task // the oldest first
	last    uint64  // id, counted from After
	running int
	closed  bool
	group   sync.WaitGroup
}

// A Task runs, or has run.
type Task struct {
	runner *Runner
	cancel context.CancelFunc
	owner  string        // identity or address
	over   chan struct{} // closed when it has ended
	shown  admin.Task    // guarded by Runner.mu
}

// Start starts a task, which is the change of a context. The task goes on when that ends. What is known of it is returned at once, or
// when it has ended, but after so many seconds.
func (r *Runner) Start(ctx context.Context, about admin.Task, seconds int, work func(ctx context.Context, t *Task) error) (admin.Task, error) {
	entry := audit.Of(ctx)
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
	entry.Write(nil) // before anything is done
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

// add adds a task, if its owner may have one more.
func (r *Runner) add(about admin.Task, owner string, cancel context.CancelFunc) (*Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == Most || r.closed {
		return nil, admin.Problemf(http.StatusServiceUnavailable, "%d tasks run already: wait until one of them ends, or cancel it", r.running).After(time.Second)
	}
	own := 0
	for _, t := range r.all {
		if t.owner == owner && t.shown.Ended == "" {
			own++
		}
	}
	if own == Share {
		return nil, admin.Problemf(http.StatusServiceUnavailable, "%d of your tasks run already: wait until one of them ends, or cancel it", own).After(time.Second)
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

// forget drops the oldest tasks that have ended, if there are too many.
func (r *Runner) forget() {
	for len(r.all) > Kept { // most of which have ended
		i := slices.IndexFunc(r.all, func(t *Task) bool { return t.shown.Ended != "" })
		r.all = slices.Delete(r.all, i, i+1)
	}
}

// end notes how the task has ended, and writes it down.
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

// Update changes what is known of a task.
func (t *Task) Update(f func(shown *admin.Task)) {
	t.runner.mu.Lock()
	defer t.runner.mu.Unlock()
	f(&t.shown)
}

// Shown returns what is known of a task.
func (t *Task) Shown() (shown admin.Task) {
	t.Update(func(now *admin.Task) {
		shown = *now
		shown.Skipped = maps.Clone(now.Skipped)
	})
	return shown
}

// Wait returns what is known of a task when it has ended, or after so many seconds.
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

// Cancel ends a task.
func (t *Task) Cancel() error {
	select {
	case <-t.over:
		return admin.Problemf(http.StatusConflict, "task %d had ended already", t.shown.ID)
	default:
	}
	t.cancel()
	<-t.over
	return nil
}

// List returns the tasks on tubes that whoever asks may see, the newest first.
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
		return nil, admin.Problemf(http.StatusNotFound, "this server has not started task %d: if another leader of the cluster has, or this server before a restart, "+
			"the task was interrupted; its changes up to then stay, and the same request does the rest", id)
	}
	return nil, admin.Problemf(http.StatusNotFound, "task %d has ended and is forgotten: the server keeps the last %d", id, Kept)
}

// Tube returns the tube with whose jobs the task began.
func (t *Task) Tube() string { return t.shown.Tube }

// Close cancels what runs, and waits until it has ended. No task starts after it.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, t := range r.all {
		t.cancel()
	}
	r.mu.Unlock()
	r.group.Wait()
}
