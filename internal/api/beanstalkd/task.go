package beanstalkd

import (
	"context"
	"errors"
	"net/http"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
	"github.com/beanpole-mq/beanpole/internal/api/task"
)

// startTask kicks or deletes the jobs of a tube in a state. The protocol has a command to kick many; to delete, each job is
// looked at and deleted, which takes two round trips.
func (b *Server) startTask(ctx context.Context, in *admin.StartTask) (shown admin.Task, err error) {
	if err := task.Check(in); err != nil {
		return shown, err
	}
	if in.State == nil || in.Q != nil || in.Do != "kick" && in.Do != "delete" {
		return shown, admin.Problemf(http.StatusNotImplemented, "a beanstalkd can kick or delete all jobs of a state, and do nothing else to many")
	}
	st, err := b.theTube(ctx, &in.OfTube)
	if err != nil {
		return shown, err
	}
	w := work{b, in.Tube, in.Do, *in.State, 0}
	w.count = map[string]uint64{"ready": st.Ready, "delayed": st.Delayed, "buried": st.Buried}[w.state]
	if in.Do == "kick" && w.state == "delayed" && st.Buried > 0 {
		return shown, admin.Problemf(http.StatusConflict, "a beanstalkd kicks buried jobs first, and there are %d: kick those, or delayed jobs one by one", st.Buried)
	}
	if in.Count != nil {
		w.count = min(w.count, uint64(*in.Count))
	}
	audit.Of(ctx).Note("state", w.state)
	return b.tasks.Start(ctx, admin.Task{Do: in.Do, Tube: in.Tube, State: w.state}, in.Wait, w.all)
}

// work is that of a task.
type work struct {
	*Server
	tube, do, state string
	count           uint64 // jobs
}

// all does what is asked for to the first jobs in the state, as often as there were jobs.
func (w *work) all(ctx context.Context, t *task.Task) error {
	defer w.tubes.Forget()
	t.Update(func(t *admin.Task) { t.Status, t.Found = task.Working, w.count })
	return w.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
		var err error
		for left := w.count; left > 0 && err == nil && ctx.Err() == nil; {
			var n uint64
			if n, err = w.some(ctx, c, left, t); n == 0 {
				break
			}
			left -= n
		}
		return errors.Join(err, ctx.Err(), c.Use(context.WithoutCancel(ctx), jobjson.DefaultTube))
	})
}

// kickedAtOnce is how many jobs a beanstalkd kicks with one command, in which it does nothing else.
const kickedAtOnce = 1000

// some does it to some jobs, and returns of how many it has come past; 0: there are no more.
func (w *work) some(ctx context.Context, c *client.Conn, most uint64, t *task.Task) (n uint64, err error) {
	gone := uint64(0)
	if w.do == "kick" {
		kicked, failed := c.Kick(ctx, w.tube, int(min(most, kickedAtOnce)))
		n, err = uint64(kicked), failed
	} else {
		n, gone, err = w.deleteFirst(ctx, c)
	}
	t.Update(func(t *admin.Task) {
		if t.Done += n - gone; gone > 0 {
			t.Skipped["gone"] += gone
		}
	})
	return n, err
}

// deleteFirst deletes the first job in a state, if there is one; gone is 1 if that has left the state meanwhile.
func (w *work) deleteFirst(ctx context.Context, c *client.Conn) (n, gone uint64, err error) {
	found, err := c.PeekTube(ctx, w.tube, client.State(w.state))
	if err == nil {
		if err = c.Delete(ctx, found.ID); err == nil {
			return 1, 0, nil
		}
		gone = 1
	}
	if errors.Is(err, client.ErrNotFound) {
		return gone, gone, nil
	}
	return 0, 0, err
}

func (b *Server) listTasks(context.Context, *admin.None) (admin.Tasks, error) {
	return b.tasks.List(func(string) bool { return true }), nil
}

func (b *Server) getTask(ctx context.Context, in *admin.GetTask) (shown admin.Task, err error) {
	t, err := b.tasks.Find(in.Task)
	if err != nil {
		return shown, err
	}
	return t.Wait(ctx, in.Wait), nil
}

func (b *Server) cancelTask(_ context.Context, in *admin.OfTask) (none admin.None, err error) {
	t, err := b.tasks.Find(in.Task)
	if err != nil {
		return none, err
	}
	return none, t.Cancel()
}
