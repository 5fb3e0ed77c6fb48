package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
	"unique"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
)

// A jobCopy is the copy of a job, and what the job was like when it was made.
type jobCopy struct {
	id    uint64
	pri   uint32
	state client.State
	tube  string
	due   moment
}

// copy puts jobs to the other server, and returns how many.
func (m *mirror) copy(ctx context.Context, found []found) (n int, err error) {
	if err := ctx.Err(); err != nil || len(found) == 0 {
		return 0, err
	}
	jobs := make([]jobjson.Job, len(found))
	for i := range found {
		jobs[i] = found[i].exported()
		if found[i].State == client.StateDelayed {
			left := time.Until(time.UnixMilli(found[i].due()[0])) // some time has passed since it was looked at
			jobs[i].TimeLeft = max(seconds(left+time.Second-1), 1)
		}
	}
	ids, err := putJobs(context.WithoutCancel(ctx), m.to, jobs)
	for i, id := range ids {
		if id != 0 {
			m.copies[found[i].ID] = copyOf(&found[i], id)
			n++
		}
	}
	return n, err
}

// copyOf returns what is known of a copy that is like its job.
func copyOf(f *found, id uint64) jobCopy {
	tube, state := unique.Make(f.Tube).Value(), f.State // one string for all jobs of a tube
	if state == client.StateReserved {
		state = client.StateReady
	}
	return jobCopy{id, f.Priority, state, tube, f.due()}
}

// compare brings the copies of some jobs up to date.
func (m *mirror) compare(ctx context.Context, ids []uint64) error {
	asked := time.Now()
	stats, err := m.from.StatsJobMany(ctx, ids)
	if err := butNotFound(err); err != nil {
		return err
	}
	at := since(asked)
	var there []found
	var gone, copies []uint64
	for i, st := range stats {
		if st != nil && (m.scan.tube == "" || st.Tube == m.scan.tube) {
			there = append(there, found{JobStats: st, at: at})
		} else {
			gone, copies = append(gone, ids[i]), append(copies, m.copies[ids[i]].id)
		}
	}
	if err := butNotFound(m.to.DeleteMany(context.WithoutCancel(ctx), copies)); err != nil {
		return err
	}
	for _, id := range gone {
		delete(m.copies, id)
	}
	m.removed += len(gone)
	return m.update(ctx, there)
}

// update makes the copies of jobs like them, where they have changed.
func (m *mirror) update(ctx context.Context, jobs []found) error {
	changed := slices.DeleteFunc(jobs, func(f found) bool {
		old, now := m.copies[f.ID], copyOf(&f, 0)
		return now.state == old.state && now.pri == old.pri && now.tube == old.tube && !now.due.differs(old.due)
	})
	for some := range slices.Chunk(changed, bodyBatch) {
		some, err := withBodies(ctx, m.from, some) // what has gone the next round will see
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if err := m.replace(context.WithoutCancel(ctx), some); err != nil {
			for i := range some { // some may have no copy now
				m.next = min(m.next, some[i].ID)
			}
			return err
		}
		m.changed += len(some)
	}
	return nil
}

// replace deletes the copies of jobs before it puts new ones, so that no worker gets both.
func (m *mirror) replace(ctx context.Context, jobs []found) error {
	copies := make([]uint64, len(jobs))
	for i := range jobs {
		copies[i] = m.copies[jobs[i].ID].id
	}
	err := m.to.DeleteMany(ctx, copies)
	if butNotFound(err) != nil {
		return err
	}
	errs := make([]error, len(jobs))
	if batch, ok := errors.AsType[*client.BatchError](err); ok {
		errs = batch.Errs
	}
	var again []found
	for i := range jobs {
		if errs[i] != nil { // somebody has taken it there
			m.copies[jobs[i].ID] = copyOf(&jobs[i], copies[i])
			continue
		}
		delete(m.copies, jobs[i].ID)
		again = append(again, jobs[i])
	}
	_, err = m.copy(ctx, again)
	return err
}
