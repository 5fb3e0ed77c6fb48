package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

// startTask kicks or deletes the jobs of a tube in a state. The protocol has a command to kick many; to delete, each job is
// looked at and deleted, which takes two round trips.
func (b *beanstalkd) startTask(r *request, in *admin.StartTask) (task admin.Task, err error) {
	job := &taskRun{request: r, in: in}
	if err := job.check(); err != nil {
		return task, err
	}
	var count uint64
	err = b.inTube(r, func(_ context.Context, _ *client.Conn, st *client.TubeStats) error {
		count = map[string]uint64{"ready": st.JobsReady, "delayed": st.JobsDelayed, "buried": st.JobsBuried}[job.state.String()]
		switch {
		case in.IDs != nil || job.match != nil || in.Do != "kick" && in.Do != "delete":
			return problemf(http.StatusNotImplemented, "a beanstalkd can kick or delete all jobs of a state, and do nothing else to many")
		case in.Do == "kick" && job.state.String() == "delayed" && st.JobsBuried > 0:
			return problemf(http.StatusConflict, "a beanstalkd kicks buried jobs first, and there are %d: kick those, or delayed jobs one by one", st.JobsBuried)
		}
		return nil
	})
	if err != nil {
		return task, err
	}
	count = min(count, mostOf(in))
	return job.begin(func(ctx context.Context) error {
		r.work.change(job.task, func(one *admin.Task) { one.Status, one.Found = taskWorks, count })
		return b.pool.Do(ctx, func(ctx context.Context, c *client.Conn) error {
			err := c.Use(ctx, r.tube)
			for done := uint64(0); done < count && err == nil && ctx.Err() == nil; {
				n, skipped := uint64(0), ""
				if in.Do == "kick" {
					n, err = kickSome(ctx, c, count-done)
				} else {
					n, skipped, err = deleteFirst(ctx, c, job.state.String())
				}
				if n == 0 {
					break
				}
				done += n
				r.work.change(job.task, func(one *admin.Task) {
					if skipped != "" {
						one.Skipped[skipped] += n
					} else {
						one.Done += n
					}
				})
			}
			b.forget()
			return errors.Join(err, ctx.Err(), c.Use(context.WithoutCancel(ctx), jobjson.DefaultTube))
		})
	})
}

// kickedAtOnce is how many jobs a beanstalkd kicks with one command, in which it does nothing else.
const kickedAtOnce = 1000

func kickSome(ctx context.Context, c *client.Conn, most uint64) (n uint64, err error) {
	kicked, err := c.Kick(ctx, int(min(most, kickedAtOnce)))
	return uint64(kicked), err
}

// deleteFirst deletes the first job in a state. If that has left the state meanwhile, it says so.
func deleteFirst(ctx context.Context, c *client.Conn, state string) (n uint64, skipped string, err error) {
	found, err := peeks[state](c, ctx)
	if errors.Is(err, client.ErrNotFound) {
		return 0, "", nil
	}
	if err == nil {
		err = c.Delete(ctx, found.ID)
	}
	switch {
	case err == nil:
		return 1, "", nil
	case errors.Is(err, client.ErrNotFound):
		return 1, "gone", nil
	}
	return 0, "", err
}
