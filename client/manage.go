package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// MaxListed is how many jobs a server tells of at most in one answer.
const MaxListed = 10_000

// A ListedJob is what a server tells of a job in a list. Of its JobStats, File and All
// are missing.
type ListedJob struct {
	JobStats
	Size   int64  // of the body, in bytes
	Cursor string // the place behind the job, for [Conn.ListJobs]
}

// ListJobs lists the jobs of a tube in a state: ready ones as they would be reserved,
// delayed and reserved ones by the time when that ends, buried ones as they were
// buried. It changes nothing. It returns at most limit of them, and at most
// [MaxListed]; the next ones come behind the Cursor of the last. An empty cursor is
// the beginning. Fewer than both limits are the end. See [Conn.Jobs] for all.
//
// A job that leaves its state, or changes its place in the order, may be missing from
// this page and the later ones, or come again.
//
// It is a command of beanpole. Other servers answer [ErrUnknownCommand]; there
// [Conn.StatsJobMany] tells of jobs whose ids are known.
func (c *Conn) ListJobs(ctx context.Context, tube string, state State, limit int, cursor string) ([]ListedJob, error) {
	q := request{Command: wire.Command{Op: wire.ListJobs, Tube: []byte(tube), Text: []byte(cursor)}, want: wire.OK}
	var jobs []ListedJob
	err := c.manage(ctx, &q, state, limit, func(r *wire.Reply) error {
		return wire.ParseListed(r.Body, func(j *wire.ListedJob) {
			jobs = append(jobs, newListedJob(tube, state, j))
		})
	})
	return jobs, err
}

func newListedJob(tube string, state State, j *wire.ListedJob) ListedJob {
	return ListedJob{
		JobStats: JobStats{
			ID:       j.ID,
			Tube:     tube,
			State:    state,
			Pri:      uint32(j.Pri),
			Age:      time.Duration(j.Age) * time.Second,
			Delay:    time.Duration(j.Delay) * time.Second,
			TTR:      time.Duration(j.TTR) * time.Second,
			TimeLeft: time.Duration(j.TimeLeft) * time.Second,
			Reserves: j.Reserves,
			Timeouts: j.Timeouts,
			Releases: j.Releases,
			Buries:   j.Buries,
			Kicks:    j.Kicks,
		},
		Size:   int64(j.Size),
		Cursor: string(j.Cursor),
	}
}

// Jobs lists all jobs of a tube in a state, with as many calls of [Conn.ListJobs] as
// that takes. An error ends the list.
func (c *Conn) Jobs(ctx context.Context, tube string, state State) iter.Seq2[*ListedJob, error] {
	return func(yield func(*ListedJob, error) bool) {
		cursor := ""
		for {
			jobs, err := c.ListJobs(ctx, tube, state, MaxListed, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range jobs {
				if !yield(&jobs[i], nil) {
					return
				}
			}
			if len(jobs) < MaxListed {
				return
			}
			cursor = jobs[len(jobs)-1].Cursor
		}
	}
}

// FlushTube deletes the jobs of a tube that are in a state, [StateReady],
// [StateDelayed] or [StateBuried], and returns how many. With a limit other than 0 it
// deletes at most so many, the first in their order. Jobs that come meanwhile are not
// deleted. The server does as much as it can and then answers: give limits where there
// may be so many jobs that it takes longer than [Options].Timeout.
//
// It is a command of beanpole; others answer [ErrUnknownCommand].
func (c *Conn) FlushTube(ctx context.Context, tube string, state State, limit int) (flushed int, err error) {
	q := request{Command: wire.Command{Op: wire.FlushTube, Tube: []byte(tube)}, want: wire.Flushed}
	err = c.manageIdle(ctx, &q, state, limit, &flushed)
	return flushed, err
}

// MoveJobs moves the jobs of a tube that are in a state, [StateReady], [StateDelayed]
// or [StateBuried], to another tube, and returns how many. They keep their ids and all
// else. With a limit other than 0 it moves at most so many, the first in their order.
// What [Conn.FlushTube] says of limits is true here too. [ErrNotFound] if there is no
// tube from, or both are the same.
//
// It is a command of beanpole; others answer [ErrUnknownCommand].
func (c *Conn) MoveJobs(ctx context.Context, from, to string, state State, limit int) (moved int, err error) {
	q := request{Command: wire.Command{Op: wire.MoveJobs, Tube: []byte(from), Text: []byte(to)}, want: wire.Moved}
	if err := CheckTube(to); err != nil {
		return 0, c.fail(&q, err)
	}
	err = c.manageIdle(ctx, &q, state, limit, &moved)
	return moved, err
}

// manageIdle is manage for jobs that no worker holds.
func (c *Conn) manageIdle(ctx context.Context, q *request, state State, limit int, n *int) error {
	if state == StateReserved {
		return c.fail(q, fmt.Errorf("%w: jobs that are reserved cannot be taken", ErrInvalid))
	}
	if limit == 0 {
		limit = math.MaxInt
	}
	return c.manage(ctx, q, state, limit, func(r *wire.Reply) error {
		*n = int(r.N)
		return nil
	})
}

// manage sends a command that is about the jobs of a tube in a state.
func (c *Conn) manage(ctx context.Context, q *request, state State, limit int, read func(*wire.Reply) error) error {
	var ok bool
	if q.State, ok = wire.ParseState(string(state)); !ok {
		return c.fail(q, fmt.Errorf("%w: state %q", ErrInvalid, state))
	}
	if limit <= 0 {
		return c.fail(q, fmt.Errorf("%w: %d jobs", ErrInvalid, limit))
	}
	q.Count = uint32(min(uint64(limit), math.MaxUint32))
	err := c.hold(ctx, q, CheckTube(string(q.Tube)), read)
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(err, ErrBadFormat) && len(wire.AppendCommand(nil, &q.Command)) > wire.MaxLine {
		// To a server that does not know the command, its line is too long.
		e.Err = fmt.Errorf("%w: %w", ErrUnknownCommand, e.Err)
	}
	return err
}
