package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// maxListed is the maximum number of jobs in a reply to list-jobs.
const maxListed = 10_000

// All is a limit that means all jobs.
const All = math.MaxInt

// A Selection selects up to Limit jobs of a tube in one state, in the order of
// [Conn.Jobs].
type Selection struct {
	Tube  string
	State State
	Limit int // 1 or more, or [All]
}

// Jobs lists jobs of a tube. Ready jobs are in the order in which they would be reserved,
// delayed and reserved jobs in the order in which their delays or times to run end, and
// buried jobs in the order of burying. Jobs changes nothing. An error ends the list. The
// fields File and All are not set.
//
// A job that changes its state or position during the list can be missing, or be listed
// twice.
//
// Only beanpole has this command. With other servers, the error is [ErrUnknownCommand];
// use [Conn.StatsJob] for jobs whose ids are known.
func (c *commands) Jobs(ctx context.Context, of Selection) iter.Seq2[*JobStats, error] {
	return func(yield func(*JobStats, error) bool) {
		for cursor := ""; ; {
			var jobs []JobStats
			q := request{Command: wire.Command{Op: wire.ListJobs, Text: []byte(cursor)}, want: wire.OK}
			err := c.ask(ctx, &q, of.describe(&q), func(r *wire.Reply) error {
				return wire.ParseListed(r.Body, func(j *wire.ListedJob) {
					jobs = append(jobs, listedJob(of, j))
					cursor = string(j.Cursor)
				})
			})
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range jobs {
				if !yield(&jobs[i], nil) {
					return
				}
			}
			if of.Limit -= len(jobs); len(jobs) < maxListed || of.Limit == 0 {
				return
			}
		}
	}
}

func listedJob(of Selection, j *wire.ListedJob) JobStats {
	return JobStats{
		ID:       j.ID,
		Tube:     of.Tube,
		State:    of.State,
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
		Size:     int64(j.Size),
	}
}

// FlushTube deletes jobs of a tube and returns their number. The state must be
// [StateReady], [StateDelayed] or [StateBuried]. Jobs that are put during the call stay.
// The server replies at the end: set a limit if the deletion can take longer than
// [Options].Timeout.
//
// Only beanpole has this command. With other servers, the error is [ErrUnknownCommand].
func (c *commands) FlushTube(ctx context.Context, of Selection) (flushed int, err error) {
	return c.manageIdle(ctx, &request{Command: wire.Command{Op: wire.FlushTube}, want: wire.Flushed}, of, nil)
}

// MoveJobs moves jobs of a tube to another tube and returns their number. The state must
// be [StateReady], [StateDelayed] or [StateBuried]. Jobs keep their ids and all other
// attributes. Set a limit as for [Conn.FlushTube]. The error is [ErrNotFound] if the
// source tube does not exist, or if both tubes are the same.
//
// Only beanpole has this command. With other servers, the error is [ErrUnknownCommand].
func (c *commands) MoveJobs(ctx context.Context, of Selection, to string) (moved int, err error) {
	q := request{Command: wire.Command{Op: wire.MoveJobs, Text: []byte(to)}, want: wire.Moved}
	return c.manageIdle(ctx, &q, of, CheckTube(to))
}

// manageIdle sends a command for jobs that are not reserved, unless err is not nil, and
// returns the number of jobs.
func (c *commands) manageIdle(ctx context.Context, q *request, of Selection, err error) (n int, _ error) {
	if err == nil && of.State == StateReserved {
		err = fmt.Errorf("%w: reserved jobs cannot be selected", ErrInvalid)
	}
	return c.askNumber(ctx, q, cmp.Or(err, of.describe(q)))
}

// describe sets the selection in a command.
func (of Selection) describe(q *request) (err error) {
	q.Tube = []byte(of.Tube)
	var ok bool
	if q.State, ok = wire.ParseState(string(of.State)); !ok {
		return fmt.Errorf("%w: state %q", ErrInvalid, of.State)
	}
	q.Count, err = count(of.Limit)
	return cmp.Or(err, CheckTube(of.Tube))
}
