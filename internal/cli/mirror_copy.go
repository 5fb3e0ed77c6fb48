package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

// A jobCopy is the copy of a job, and what the job was like when it was made.
type jobCopy struct {
	id    uint64
	pri   uint32
	state client.State
	tube  string
	due   dueTime
}

// A dueTime is when a delayed job is to be ready: not before the first, and not after the
// second, in Unix milliseconds. The zero value is not known, or not delayed.
type dueTime [2]int64

// dueOf returns the due time of a job.
func dueOf(f *found) (due dueTime) {
	if f.State == client.StateDelayed {
		earliest, latest := f.due()
		due = dueTime{earliest.UnixMilli(), latest.UnixMilli()}
	}
	return due
}

// differs reports whether two due times cannot be the same.
func (d dueTime) differs(other dueTime) bool {
	return d != dueTime{} && other != dueTime{} && (d[1] < other[0] || other[1] < d[0])
}

func byTube(a, b found) int { return cmp.Compare(a.Tube, b.Tube) }

// copy puts jobs to the other server.
func (m *mirror) copy(ctx context.Context, found []found) error {
	if len(found) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortStableFunc(found, byTube)
	jobs := make([]jobjson.Job, len(found))
	copies := make([]mirrorCopy, len(found))
	for i := range found {
		jobs[i] = found[i].exported()
		j := &jobs[i]
		if found[i].State == client.StateDelayed {
			earliest, _ := found[i].due() // some time has passed since it was looked at
			j.TimeLeft = max(seconds(time.Until(earliest)+time.Second-1), 1)
		}
		copies[i] = mirrorCopy{Source: j.ID, Tube: j.Tube, Pri: j.Priority, State: client.State(j.State), Due: dueOf(&found[i]), Key: mirrorKey(j.Tube, j.Priority, int64(j.TTR), found[i].body)}
	}
	if err := m.log.intend(mirrorRecord{Batch: &mirrorBatch{After: m.after, Jobs: copies}}); err != nil {
		return err
	}
	ids, err := putJobs(context.WithoutCancel(ctx), m.to, jobs)
	var done []mirrorCopy
	for i, id := range ids {
		if id != 0 {
			m.after = max(m.after, id)
			copies[i].Copy, copies[i].Key = id, ""
			m.copies[copies[i].Source] = copies[i].jobCopy()
			done = append(done, copies[i])
		}
	}
	if err != nil {
		return err // what was put is found by the next run
	}
	return m.log.note(mirrorRecord{Copies: done, Done: true})
}

// compareAll brings the copies of these jobs up to date.
func (m *mirror) compareAll(ctx context.Context, ids []uint64) error {
	for some := range slices.Chunk(ids, scanBatch) {
		if err := m.compare(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// compare is compareAll for jobs of which all are asked for in a round trip.
func (m *mirror) compare(ctx context.Context, ids []uint64) error {
	asked := time.Now()
	stats, err := m.from.StatsJobMany(ctx, ids)
	if err := butNotFound(err); err != nil {
		return err
	}
	at := span{asked, time.Now()}
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
	if len(gone) > 0 {
		if err := m.log.note(mirrorRecord{Gone: gone}); err != nil {
			return err
		}
	}
	return m.update(ctx, there)
}

// update makes the copies of jobs like them, where they have changed.
func (m *mirror) update(ctx context.Context, jobs []found) error {
	var changed []found
	var kicked []mirrorCopy
	for i := range jobs {
		st := &jobs[i]
		old, due := m.copies[st.ID], dueOf(st)
		state := st.State
		if state == client.StateReserved {
			state = client.StateReady
		}
		switch {
		case state == old.state && st.Priority == old.pri && st.Tube == old.tube && !due.differs(old.due):
		case state == client.StateReady && old.state == client.StateDelayed && st.Priority == old.pri && st.Tube == old.tube:
			// Its delay may be over there too.
			if err := ignoreNotFound(m.to.KickJob(ctx, old.id)); err != nil {
				return err
			}
			old.state, old.due = state, dueTime{}
			m.copies[st.ID] = old
			kicked = append(kicked, mirrorCopy{Source: st.ID, Copy: old.id, Tube: old.tube, Pri: old.pri, State: state})
		default:
			changed = append(changed, *st)
		}
	}
	if len(kicked) > 0 {
		if err := m.log.note(mirrorRecord{Copies: kicked}); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(changed, bodyBatch) {
		if err := m.redo(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// redo makes copies again. The old ones are deleted first, so that no worker gets both.
func (m *mirror) redo(ctx context.Context, changed []found) error {
	jobs, err := withBodies(ctx, m.from, changed) // what has gone the next round will see
	if err != nil || len(jobs) == 0 {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	ids, copies := make([]uint64, len(jobs)), make([]uint64, len(jobs))
	for i := range jobs {
		ids[i], copies[i] = jobs[i].ID, m.copies[jobs[i].ID].id
	}
	if err := m.log.intend(mirrorRecord{Redo: ids}); err != nil {
		return err
	}
	err = m.to.DeleteMany(ctx, copies)
	if butNotFound(err) != nil {
		return err
	}
	errs := make([]error, len(jobs))
	if batch, ok := errors.AsType[*client.BatchError](err); ok {
		errs = batch.Errs
	}
	m.changed += len(jobs)
	var again []found
	var taken []mirrorCopy
	for i := range jobs {
		j := &jobs[i]
		if errs[i] == nil {
			again = append(again, *j)
			delete(m.copies, j.ID)
			continue
		}
		// Somebody has taken it there.
		state := client.State(j.exported().State)
		taken = append(taken, mirrorCopy{Source: j.ID, Copy: copies[i], Tube: j.Tube, Pri: j.Priority, State: state, Due: dueOf(j)})
		m.copies[j.ID] = taken[len(taken)-1].jobCopy()
	}
	if len(taken) > 0 {
		if err := m.log.note(mirrorRecord{Copies: taken}); err != nil {
			return err
		}
	}
	return m.copy(ctx, again)
}
