package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// beanpole lists the jobs of a tube. beanstalkd does not; what it has is stats-job, so
// its jobs are found by asking for each id that it has ever given.

// scanCost is what the commands that scan say of it in their help.
const scanCost = `beanpole lists its jobs (list-jobs), which costs it little and changes nothing. Other
servers have no command for that, so each is asked for every id that it has ever given,
thousands in a round trip. That takes time in proportion to all jobs ever put, not to
those that are there: some seconds for each million. To know the newest id a job is put
into a tube of its own and deleted at once, which workers do not see and which changes
the counters of puts and deletes by one. A server that drains takes no put: give it
--last. With --from or --last beanpole is asked in the same way.`

// slowScan is what they say when that comes to pass.
const slowScan = "the server has no list-jobs: it is asked for every id that it has ever given, and a job is put and deleted to know the newest"

const (
	scanBatch = 4000 // ids in a round trip
	bodyBatch = 500  // bodies in a round trip; they may be large

	probePrefix = "beanpole-probe."
	probeDelay  = time.Hour // no worker is to get it, whatever it watches
)

// newestID returns an id that is larger than those of all jobs that are there: that of a
// job that is put for this, and deleted.
func newestID(ctx context.Context, c *client.Conn) (uint64, error) {
	id, err := c.Put(ctx, client.NewJob{Tube: probePrefix + strings.ToLower(rand.Text()[:12]), Priority: 1<<32 - 1, Delay: probeDelay})
	switch {
	case errors.Is(err, client.ErrDraining):
		return 0, fmt.Errorf("%w: it does not tell its newest id", err)
	case err != nil:
		return 0, err
	}
	return id, c.Delete(context.WithoutCancel(ctx), id)
}

// A scan looks for jobs.
type scan struct {
	tube     string         // where; empty: everywhere
	states   []client.State // nil: in any
	from, to uint64         // the ids to ask for, both included; 0: from 1 on, and up to the newest
	bodies   bool           // look at the bodies too
	first    int            // no more jobs than that are wanted; 0: no limit
	progress func(done, total uint64)
	slow     func() // is called where the server cannot list jobs
	total    uint64 // jobs, about
}

// An eachFound is called with jobs that are found, some at a time. It returns false to
// end the scan.
type eachFound func([]found) (more bool, err error)

// A found job is one that a scan has found. It may have changed since.
type found struct {
	*client.JobStats
	body []byte
	at   span // when it was as it says
}

// A span is the time between a question and its answer.
type span struct{ asked, answered time.Time }

// due returns when a delayed job is to be ready: not before the first, and not after the
// second. Its server counts whole seconds.
func (f *found) due() (earliest, latest time.Time) {
	return f.at.asked.Add(f.TimeLeft), f.at.answered.Add(f.TimeLeft + time.Second)
}

// foundIn returns the jobs of which statistics were asked for.
func foundIn(stats []*client.JobStats, at span) []found {
	jobs := make([]found, len(stats))
	for i, st := range stats {
		jobs[i] = found{JobStats: st, at: at}
	}
	return jobs
}

// define adds the options that every scan has.
func (sc *scan) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint64Var(&sc.from, "from", 0, "begin with this `ID` (1)")
	f.Uint64Var(&sc.to, "last", 0, "end with this `ID`, and do not ask for the newest")
}

// check says whether the options fit together.
func (sc *scan) check() error {
	if sc.to > 0 && sc.from > sc.to {
		return kit.UsageError("--from %d is after --last %d", sc.from, sc.to)
	}
	return nil
}

// byID reports whether ids were given: then every server is asked for each.
func (sc *scan) byID() bool { return sc.from > 0 || sc.to > 0 }

// resolve fills in what the server must be asked for.
func (sc *scan) resolve(ctx context.Context, c *client.Conn) error {
	sc.from = max(sc.from, 1)
	if sc.to > 0 {
		return nil
	}
	newest, err := newestID(ctx, c)
	sc.to = newest - 1
	return err
}

// run calls each with the jobs that are found: as the server lists them, or by
// ascending ids if it cannot or if ids were given.
func (sc *scan) run(ctx context.Context, c *client.Conn, each eachFound) error {
	if sc.byID() {
		return sc.ids(ctx, c, each)
	}
	if err := sc.count(ctx, c); err != nil {
		return err
	}
	err := sc.pages(ctx, c, each)
	if !errors.Is(err, client.ErrUnknownCommand) {
		return err
	}
	if sc.slow != nil {
		sc.slow()
	}
	return sc.ids(ctx, c, each)
}

// ids is run by ascending ids.
func (sc *scan) ids(ctx context.Context, c *client.Conn, each eachFound) error {
	if err := sc.resolve(ctx, c); err != nil {
		return err
	}
	for next := sc.from; next <= sc.to; {
		ids := make([]uint64, min(scanBatch, sc.to-next+1))
		for i := range ids {
			ids[i] = next + uint64(i)
		}
		next += uint64(len(ids))
		asked := time.Now()
		stats, err := c.StatsJobMany(ctx, ids)
		if err := butNotFound(err); err != nil {
			return err
		}
		at := span{asked, time.Now()}
		stats = slices.DeleteFunc(stats, func(st *client.JobStats) bool { return !sc.wants(st) })
		for batch := range slices.Chunk(stats, bodyBatch) {
			jobs, err := sc.look(ctx, c, foundIn(batch, at))
			if err != nil {
				return err
			}
			if more, err := each(jobs); err != nil || !more {
				return err
			}
		}
		if sc.progress != nil {
			sc.progress(next-sc.from, sc.to-sc.from+1)
		}
	}
	return nil
}

// wants reports whether the scan looks for a job; st is nil where there is none.
func (sc *scan) wants(st *client.JobStats) bool {
	switch {
	case st == nil:
		return false
	case sc.tube == "" && strings.HasPrefix(st.Tube, probePrefix):
		return false
	}
	return (sc.tube == "" || sc.tube == st.Tube) && (sc.states == nil || slices.Contains(sc.states, st.State))
}

// look gets the bodies, if they are wanted. Jobs that have gone meanwhile are left out.
func (sc *scan) look(ctx context.Context, c *client.Conn, jobs []found) ([]found, error) {
	if !sc.bodies {
		return jobs, nil
	}
	return withBodies(ctx, c, jobs)
}

// withBodies returns the jobs that are still there, with their bodies.
func withBodies(ctx context.Context, c *client.Conn, jobs []found) ([]found, error) {
	ids := make([]uint64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	bodies, err := c.PeekMany(ctx, ids)
	if err := butNotFound(err); err != nil {
		return nil, err
	}
	kept := jobs[:0]
	for i, b := range bodies {
		if b.ID != 0 {
			jobs[i].body = b.Body
			kept = append(kept, jobs[i])
		}
	}
	return kept, nil
}

// butNotFound returns the first error of a batch that is not ErrNotFound.
func butNotFound(err error) error {
	batch, ok := errors.AsType[*client.BatchError](err)
	if !ok {
		return err
	}
	for _, err := range batch.Errs {
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
	}
	return nil
}
