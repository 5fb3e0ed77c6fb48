package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
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
	scanBatch = 4000    // ids in a round trip
	bodyBatch = 500     // bodies in a round trip; they may be large
	bodyBytes = 8 << 20 // and about how many bytes of them, where that is known before

	probePrefix = "beanpole-probe."
	probeDelay  = time.Hour // no worker is to get it, whatever it watches
)

// scanOrder is the order in which the lists of all states are read so that each job
// is in one of them at least that changes its state once meanwhile: workers take
// ready jobs, and what was delayed or buried becomes ready.
var scanOrder = []client.State{client.StateReserved, client.StateBuried, client.StateDelayed, client.StateReady, client.StateReserved}

// A scan looks for jobs.
type scan struct {
	tube     string         // where; empty: everywhere
	states   []client.State // nil: in any
	from, to uint64         // the ids to ask for, both included; 0: from 1 on, and up to the newest
	first    int            // no more jobs than that are wanted; 0: no limit

	// What a scan has found out.
	byID bool   // the jobs are asked for by ids: some were given, or the server cannot list jobs
	last uint64 // that was asked for by ids
}

// A found job is one that a scan has found. It may have changed since.
type found struct {
	*client.JobStats
	body []byte
	at   moment // when it was as it says
}

// A moment is not before the first, and not after the second, in Unix milliseconds. The zero value is
// not known.
type moment [2]int64

// since is the moment in which a question was answered that was asked then.
func since(asked time.Time) moment { return moment{asked.UnixMilli(), time.Now().UnixMilli()} }

// differs reports whether two moments cannot be the same.
func (m moment) differs(other moment) bool {
	return m != moment{} && other != moment{} && (m[1] < other[0] || other[1] < m[0])
}

// due returns when a delayed job is to be ready. Its server counts whole seconds.
func (f *found) due() moment {
	if f.State != client.StateDelayed {
		return moment{}
	}
	left := f.TimeLeft.Milliseconds()
	return moment{f.at[0] + left, f.at[1] + left + 1000}
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
		return cliutil.UsageError("--from %d is after --last %d", sc.from, sc.to)
	}
	return nil
}

// errEnough ends a scan early.
var errEnough = errors.New("no more jobs are wanted")

// A scanner runs a scan.
type scanner struct {
	*scan
	conn  *client.Conn
	bar   *cliutil.Bar
	count int // jobs that were found
	each  func([]found) error
}

// scan calls each with the jobs that are found, some at a time and without their bodies: as the
// server lists them, or by ascending ids if it cannot or if ids were given. An error of each
// ends the scan.
func (s *session) scan(ctx context.Context, c *client.Conn, sc *scan, each func([]found) error) error {
	r := &scanner{scan: sc, conn: c, bar: cliutil.NewBar(s.Err, "jobs"), each: each}
	defer r.bar.End()
	err := client.ErrUnknownCommand
	if sc.byID = sc.byID || sc.from > 0 || sc.to > 0; !sc.byID {
		err = r.lists(ctx)
		if errors.Is(err, client.ErrUnknownCommand) {
			sc.byID = true
			s.Note(slowScan)
		}
	}
	if sc.byID {
		err = r.ids(ctx)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// found tells of some jobs, and how far the scan has come.
func (r *scanner) found(jobs []found, done, total uint64) error {
	r.count += len(jobs)
	err := r.each(jobs)
	r.bar.Show(done, total, r.count)
	return err
}

// lists finds the jobs that the server lists. The error is client.ErrUnknownCommand, and
// nothing was done, if it cannot.
func (r *scanner) lists(ctx context.Context) error {
	total, err := r.total(ctx)
	tubes := []string{r.tube}
	if err == nil && r.tube == "" {
		tubes, err = r.conn.ListTubes(ctx)
	}
	if err != nil {
		return ignoreNotFound(err)
	}
	states := r.states
	if states == nil {
		states = scanOrder
	}
	seen := make(map[uint64]struct{}) // a job may be in several lists
	for _, tube := range tubes {
		if r.tube == "" && strings.HasPrefix(tube, probePrefix) {
			continue
		}
		for _, state := range states {
			if err := r.list(ctx, tube, state, seen, total); err != nil {
				return err
			}
		}
	}
	return nil
}

// total returns how many jobs there are, for the progress.
func (r *scanner) total(ctx context.Context) (uint64, error) {
	if r.tube != "" {
		st, err := r.conn.StatsTube(ctx, r.tube)
		if err != nil {
			return 0, err
		}
		return st.JobsReady + st.JobsReserved + st.JobsDelayed + st.JobsBuried, nil
	}
	st, err := r.conn.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return st.JobsReady + st.JobsReserved + st.JobsDelayed + st.JobsBuried, nil
}

// list finds the jobs of one list.
func (r *scanner) list(ctx context.Context, tube string, state client.State, seen map[uint64]struct{}, total uint64) error {
	limit := min(client.MaxListed, cmp.Or(r.first, client.MaxListed))
	for cursor, more := "", true; more; {
		asked := time.Now()
		page, err := r.conn.ListJobs(ctx, client.Selection{Tube: tube, State: state, Limit: limit}, cursor)
		if err != nil {
			return ignoreNotFound(err) // the tube has gone
		}
		at := since(asked)
		if more = len(page) == limit; more {
			cursor = page[limit-1].Cursor
		}
		for len(page) > 0 {
			var batch []found
			for bytes := int64(0); len(page) > 0 && len(batch) < bodyBatch && bytes < bodyBytes; page = page[1:] {
				j := &page[0]
				if _, again := seen[j.ID]; again {
					continue
				}
				seen[j.ID] = struct{}{}
				batch = append(batch, found{JobStats: &j.JobStats, at: at})
				bytes += j.Size
			}
			if err := r.found(batch, uint64(len(seen)), total); err != nil {
				return err
			}
		}
	}
	return nil
}

// newestID returns an id that is larger than those of all jobs that are there: that of a
// job that is put for this, and deleted.
func newestID(ctx context.Context, c *client.Conn) (uint64, error) {
	id, err := c.Put(ctx, client.NewJob{Tube: probePrefix + strings.ToLower(rand.Text()[:12]), Priority: new(uint32(math.MaxUint32)), Delay: probeDelay})
	switch {
	case errors.Is(err, client.ErrDraining):
		return 0, fmt.Errorf("%w: it does not tell its newest id", err)
	case err != nil:
		return 0, err
	}
	return id, c.Delete(context.WithoutCancel(ctx), id)
}

// ids finds the jobs by asking for each id.
func (r *scanner) ids(ctx context.Context) error {
	from := max(r.from, 1)
	if r.last = r.to; r.to == 0 {
		newest, err := newestID(ctx, r.conn)
		if err != nil {
			return err
		}
		r.last = newest - 1
	}
	for next := from; next <= r.last; {
		ids := make([]uint64, min(scanBatch, r.last-next+1))
		for i := range ids {
			ids[i] = next + uint64(i)
		}
		next += uint64(len(ids))
		asked := time.Now()
		stats, err := r.conn.StatsJobMany(ctx, ids)
		if err := butNotFound(err); err != nil {
			return err
		}
		at := since(asked)
		stats = slices.DeleteFunc(stats, func(st *client.JobStats) bool { return !r.wants(st) })
		for some := range slices.Chunk(stats, bodyBatch) {
			batch := make([]found, len(some))
			for i, st := range some {
				batch[i] = found{JobStats: st, at: at}
			}
			if err := r.found(batch, next-from, r.last-from+1); err != nil {
				return err
			}
		}
		r.bar.Show(next-from, r.last-from+1, r.count)
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
