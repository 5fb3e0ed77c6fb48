package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

const moveLong = `Move jobs from one tube to another, with their priorities, times to run and bodies;
delayed jobs with the delay that is left, and buried ones stay buried. Jobs that a
worker holds are not touched.

beanpole moves them by itself (move-jobs): they keep their ids, ages and counters, and a
job is in one of the tubes at any moment. Other servers have no command for that. There
each job is reserved, which keeps workers from it, put into the other tube, and then
deleted: it gets a new id, its counters start at zero, and the counters of puts, reserves
and deletes go up. If the command is killed between the put and the delete, up to 500
jobs are in both tubes; none is lost. A job whose time to run ends meanwhile, and which a
worker takes, stays with that worker; if its copy was taken by then, there are two of it,
and the command says so. A job takes four commands: ready ones hundreds in a round trip,
the others one by one.`

// slowMove is what the command says where that is so.
const slowMove = "the server has no move-jobs: each job is reserved, put again and deleted, so it gets a new id, and counters go up"

func newMove() *cobra.Command {
	var states stateOption
	var count int
	cmd := newCommand("move", "FROM TO", "move jobs to another tube", func(ctx context.Context, s *session, args []string) error {
		wanted, err := states.needed()
		if err != nil {
			return err
		}
		switch {
		case args[0] == args[1]:
			return kit.UsageError("FROM and TO are the same tube")
		case count < 0:
			return kit.UsageError("--count is not negative; 0 is all")
		}
		if err := client.CheckTube(args[1]); err != nil {
			return err
		}
		c, err := s.dialTube(ctx, args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		m := &mover{session: s, conn: c, from: args[0], to: args[1], left: count}
		b := kit.NewBar(s.Err, "jobs")
		defer b.End()
		m.slow = sync.OnceFunc(func() { s.Note(slowMove) })
		m.progress = func() { b.Show(uint64(m.moved), uint64(m.there), m.moved) }
		for _, state := range wanted {
			if err := m.move(ctx, state); err != nil {
				return fmt.Errorf("after %s: %w", countJobs(uint64(m.moved), ""), err)
			}
		}
		b.End()
		return s.did("moved", m.moved)
	})
	cmd.Long = moveLong
	cmd.Example = "  beanpole move mail mail.later --state delayed\n  beanpole move failed mail --state buried --count 100"
	states.define(cmd, idleStates, "move the jobs in these")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "move `N` jobs and no more; 0: all that are there")
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

// A mover moves jobs from one tube to another.
type mover struct {
	*session
	conn     *client.Conn
	from, to string
	left     int // that may be moved; 0: no limit
	moved    int
	there    int // jobs that were to be moved, of this state and those before
	progress func()
	slow     func() // is called where the server cannot do it by itself
}

// moveBatch is how many jobs are moved in a round trip.
const moveBatch = 500

// move moves the jobs of a state: as many as there are now, so that it ends where
// others go on putting.
func (m *mover) move(ctx context.Context, state client.State) error {
	st, err := m.conn.StatsTube(ctx, m.from)
	if err != nil {
		return ignoreNotFound(err)
	}
	there := int(jobsIn(st, state))
	if m.left > 0 {
		there = min(there, m.left-m.moved)
	}
	m.there += there
	for n := sweepBatch; n == sweepBatch && there > 0; there -= n {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Not interrupted, so that it is known how many were moved.
		n, err = m.conn.MoveJobs(context.WithoutCancel(ctx), client.Selection{Tube: m.from, State: state, Limit: min(there, sweepBatch)}, m.to)
		if errors.Is(err, client.ErrUnknownCommand) {
			m.slow()
			return m.copyAndDelete(ctx, state, there, st.PauseLeft > 0)
		}
		m.moved += n
		if err != nil {
			return ignoreNotFound(err)
		}
		m.progress()
	}
	return nil
}

// copyAndDelete is move on any server, of so many jobs.
func (m *mover) copyAndDelete(ctx context.Context, state client.State, there int, paused bool) (err error) {
	if err := m.conn.WatchOnly(ctx, m.from); err != nil {
		return err
	}
	for there > 0 {
		n := min(there, moveBatch)
		if err := ctx.Err(); err != nil {
			return err
		}
		var jobs []found
		if state == client.StateReady && !paused {
			jobs, err = m.takeReady(ctx, n)
		} else {
			jobs, err = m.takeOne(ctx, state)
		}
		if err != nil || len(jobs) == 0 {
			return err
		}
		// Not interrupted, so that no job is left in both tubes.
		if err := m.place(context.WithoutCancel(ctx), jobs); err != nil {
			return err
		}
		there -= len(jobs)
		m.progress()
	}
	return nil
}

// takeReady reserves jobs in the order in which workers would get them.
func (m *mover) takeReady(ctx context.Context, n int) ([]found, error) {
	reserved, err := m.conn.ReserveMany(ctx, n, 0)
	if errors.Is(err, client.ErrTimedOut) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := make([]uint64, len(reserved))
	for i, j := range reserved {
		ids[i] = j.ID
	}
	stats, err := m.conn.StatsJobMany(ctx, ids)
	if err := butNotFound(err); err != nil {
		return nil, err
	}
	jobs := make([]found, 0, len(reserved))
	for i, st := range stats {
		if st != nil { // else somebody has deleted it, its time to run being over
			st.State = client.StateReady
			jobs = append(jobs, found{JobStats: st, body: reserved[i].Body})
		}
	}
	return jobs, nil
}

// takeOne reserves the job that is next in a state, whatever the tube's pause.
func (m *mover) takeOne(ctx context.Context, state client.State) ([]found, error) {
	for {
		j, err := peekState(ctx, m.conn, m.from, state)
		if errors.Is(err, client.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		st, err := m.conn.StatsJob(ctx, j.ID)
		if err == nil && st.State == state {
			_, err = m.conn.ReserveJob(ctx, j.ID)
		}
		switch {
		case err == nil && st.State == state:
			return []found{{JobStats: st, body: j.Body}}, nil
		case err != nil && !errors.Is(err, client.ErrNotFound):
			return nil, err
		}
		// It has changed meanwhile: the next.
	}
}

// place puts jobs that are reserved into the other tube, and deletes them.
func (m *mover) place(ctx context.Context, taken []found) error {
	jobs := make([]jobjson.Job, len(taken))
	ids := make([]uint64, len(taken))
	for i := range taken {
		jobs[i], ids[i] = taken[i].exported(), taken[i].ID
		jobs[i].Tube = m.to
	}
	copies, err := putJobs(ctx, m.conn, jobs)
	if err != nil {
		return err
	}
	err = m.conn.DeleteMany(ctx, ids)
	if butNotFound(err) != nil {
		return err
	}
	m.moved += len(taken)
	if batch, ok := errors.AsType[*client.BatchError](err); ok {
		return m.rollbackCopies(ctx, copies, batch.Errs)
	}
	return nil
}

// rollbackCopies deletes the copies of jobs that could not be deleted: their time to run was over,
// and a worker has them, or has done them.
func (m *mover) rollbackCopies(ctx context.Context, copies []uint64, errs []error) error {
	var late []uint64
	for i, err := range errs {
		if err != nil {
			late = append(late, copies[i])
		}
	}
	m.moved -= len(late)
	err := m.conn.DeleteMany(ctx, late)
	if batch, ok := errors.AsType[*client.BatchError](err); ok && butNotFound(err) == nil {
		m.Note("%s in both tubes: the time to run was over before the delete, and workers have taken both", countJobs(uint64(len(batch.Unwrap())), ""))
	}
	return butNotFound(err)
}
