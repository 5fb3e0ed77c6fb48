package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// MaxListed is the largest number of jobs that a server lists in one answer.
const MaxListed = 10_000

// All is a limit that means all jobs.
const All = math.MaxInt

// A Selection is the jobs of a tube that are in a state, in the order that
// [Conn.ListJobs] gives, at most Limit of them.
type Selection struct {
	Tube  string
	State State
	Limit int // 1 or more, or [All]
}

// A ListedJob describes a job in a list. The fields File and All of its JobStats are not
// set.
type ListedJob struct {
	JobStats
	Size   int64  // of the body, in bytes
	Cursor string // the place after the job, for [Conn.ListJobs]
}

// ListJobs lists jobs of a tube: ready jobs in the order in which they would be reserved,
// delayed and reserved jobs by the time when the delay or the time to run ends, buried
// jobs in the order in which they were buried. It changes nothing. It returns one page:
// the jobs after the cursor, or from the beginning if the cursor is empty, and at most
// [MaxListed] jobs, whatever the limit. To get the next page, pass the Cursor of the last
// job. A page with fewer jobs than the limit and MaxListed is the last one. [Conn.Jobs]
// goes through all pages.
//
// A job that leaves its state, or changes its place in the order, may be missing from
// this page and the later ones, or be listed twice.
//
// Only beanpole has this command. With other servers the error is [ErrUnknownCommand];
// there [Conn.StatsJobMany] describes jobs whose ids are known.
func (c *commands) ListJobs(ctx context.Context, of Selection, cursor string) ([]ListedJob, error) {
	q := request{Command: wire.Command{Op: wire.ListJobs, Text: []byte(cursor)}, want: wire.OK}
	var jobs []ListedJob
	err := c.ask(ctx, &q, of.describe(&q), func(r *wire.Reply) error {
		return wire.ParseListed(r.Body, func(j *wire.ListedJob) {
			jobs = append(jobs, newListedJob(of.Tube, of.State, j))
		})
	})
	return jobs, tooLong(&q, err)
}

func newListedJob(tube string, state State, j *wire.ListedJob) ListedJob {
	return ListedJob{
		JobStats: JobStats{
			ID:       j.ID,
			Tube:     tube,
			State:    state,
			Priority: uint32(j.Pri),
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

// Jobs lists jobs of a tube, with as many calls of [Conn.ListJobs] as necessary. An
// error ends the list.
func (c *commands) Jobs(ctx context.Context, of Selection) iter.Seq2[*ListedJob, error] {
	return func(yield func(*ListedJob, error) bool) {
		cursor := ""
		for {
			jobs, err := c.ListJobs(ctx, of, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range jobs {
				if !yield(&jobs[i], nil) {
					return
				}
			}
			if of.Limit -= len(jobs); len(jobs) < MaxListed || of.Limit == 0 {
				return
			}
			cursor = jobs[len(jobs)-1].Cursor
		}
	}
}

// FlushTube deletes jobs of a tube, which must be in the state [StateReady],
// [StateDelayed] or [StateBuried], and returns how many it has deleted. Jobs that are put
// meanwhile are not deleted. The server answers when it is done: use a limit if there may
// be so many jobs that this takes longer than [Options].Timeout.
//
// Only beanpole has this command. With other servers the error is [ErrUnknownCommand].
func (c *commands) FlushTube(ctx context.Context, of Selection) (flushed int, err error) {
	return c.manageIdle(ctx, &request{Command: wire.Command{Op: wire.FlushTube}, want: wire.Flushed}, of, nil)
}

// MoveJobs moves jobs of a tube, which must be in the state [StateReady], [StateDelayed]
// or [StateBuried], to another tube, and returns how many it has moved. Apart from the
// tube nothing about the jobs changes, not even their ids. What [Conn.FlushTube] says
// about limits holds here too. The error is [ErrNotFound] if the tube to take them from
// does not exist, or if both tubes are the same.
//
// Only beanpole has this command. With other servers the error is [ErrUnknownCommand].
func (c *commands) MoveJobs(ctx context.Context, of Selection, to string) (moved int, err error) {
	q := request{Command: wire.Command{Op: wire.MoveJobs, Text: []byte(to)}, want: wire.Moved}
	return c.manageIdle(ctx, &q, of, CheckTube(to))
}

// manageIdle sends a command that is about jobs that no worker holds, unless err is an
// error, and returns how many there were.
func (c *commands) manageIdle(ctx context.Context, q *request, of Selection, err error) (n int, _ error) {
	if err == nil && of.State == StateReserved {
		err = fmt.Errorf("%w: jobs that are reserved cannot be taken", ErrInvalid)
	}
	n, err = c.askNumber(ctx, q, cmp.Or(err, of.describe(q)))
	return n, tooLong(q, err)
}

// describe says in a command which jobs it is about.
func (of Selection) describe(q *request) (err error) {
	q.Tube = []byte(of.Tube)
	var ok bool
	if q.State, ok = wire.ParseState(string(of.State)); !ok {
		return fmt.Errorf("%w: state %q", ErrInvalid, of.State)
	}
	q.Count, err = count(of.Limit)
	return cmp.Or(err, CheckTube(of.Tube))
}

// tooLong makes the error that it is of a command that the server finds too long, as one
// that does not know it.
func tooLong(q *request, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(err, ErrBadFormat) && len(wire.AppendCommand(nil, &q.Command)) > wire.MaxLine {
		e.Err = fmt.Errorf("%w: %w", ErrUnknownCommand, e.Err)
	}
	return err
}
