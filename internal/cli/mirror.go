package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

const mirrorLong = `Copy the jobs of a live server to another, to migrate. The first is only read, apart
from what is said below; in the other each job gets a new id, and its counters begin
anew. The connection options are for both.

Jobs change while they are copied. So when all are copied, each is looked at once more:

  new             it is copied
  gone            its copy is deleted, if nobody has taken it there
  kicked, buried,
  new priority    its copy becomes the same; if somebody has taken it there, it stays
  reserved        its copy is ready: that is what it becomes without its worker

With --follow this is repeated until you stop it. To migrate without losing a job or
doing one twice: run it with --follow; stop the producers and let them put to the other
server; stop the workers; when a round finds nothing new, stop this; start the workers
at the other server. Until then the other server must have no workers, or they do the
jobs that are done here too.

It keeps in memory which job is a copy of which, about 100 bytes for each. If it is
killed, clear what it has copied and begin anew.

` + scanCost

func newMirror() *cobra.Command {
	var opt struct {
		to, token string
		follow    bool
		every     time.Duration
	}
	var sc scan
	cmd := newCommand("mirror", "", "copy the jobs of a live server to another", func(ctx context.Context, s *session, _ []string) error {
		if opt.to == "" || opt.to == s.server.addr {
			return usageError("--to is needed: the address of another server")
		}
		if opt.every < 10*time.Millisecond {
			return usageError("--every must be 10ms or more")
		}
		from, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer from.Close()
		options, err := s.server.options()
		if err != nil {
			return err
		}
		options.Token = cmp.Or(opt.token, options.Token)
		to, err := client.Dial(ctx, opt.to, options)
		if err != nil {
			return err
		}
		defer to.Close()
		m := &mirror{session: s, from: from, to: to, tube: sc.tube, next: sc.from, last: sc.to, copies: make(map[uint64]jobCopy)}
		return m.run(ctx, opt.follow, opt.every)
	})
	cmd.Long = mirrorLong
	cmd.Example = "  beanpole mirror --addr old:11300 --to new:11300 --follow"
	f := cmd.Flags()
	f.StringVar(&opt.to, "to", "", "`ADDR` of the other server")
	f.StringVar(&opt.token, "to-token", "", "the `TOKEN` for the other server (that of --token)")
	f.StringVarP(&sc.tube, "tube", "t", "", "only this `TUBE` (all)")
	f.BoolVar(&opt.follow, "follow", false, "go on until interrupted")
	f.DurationVar(&opt.every, "every", time.Second, "with --follow: look again after this `TIME`")
	sc.define(cmd)
	return cmd
}

// A mirror copies the jobs of a server.
type mirror struct {
	*session
	from, to *client.Conn
	tube     string
	next     uint64 // the first id that was not looked at
	last     uint64 // that is to be looked at; 0: the newest
	copies   map[uint64]jobCopy

	copied, changed, removed int // jobs
}

// A jobCopy is the copy of a job, and what the job was like when it was made.
type jobCopy struct {
	id    uint64
	pri   uint32
	state client.State
}

func (m *mirror) run(ctx context.Context, follow bool, every time.Duration) error {
	for last := -1; ; {
		before := m.copied + m.changed + m.removed
		err := m.round(ctx)
		switch {
		case follow && ctx.Err() != nil:
			return m.print()
		case err != nil:
			return fmt.Errorf("after %d jobs: %w", m.copied, err)
		case !follow:
			return m.print()
		}
		if before == m.copied+m.changed+m.removed && before != last { // say it once
			m.note("nothing new; %d jobs are mirrored", len(m.copies))
			last = before
		}
		select {
		case <-ctx.Done():
			return m.print()
		case <-time.After(every):
		}
	}
}

func (m *mirror) print() error {
	if m.json {
		return m.printJSON(map[string]int{"copied": m.copied, "changed": m.changed, "removed": m.removed})
	}
	_, err := fmt.Fprintf(m.out, "copied %d, changed %d, removed %d\n", m.copied, m.changed, m.removed)
	return err
}

// round copies what is new, and then looks at all that was copied.
func (m *mirror) round(ctx context.Context) error {
	b := m.newBar("jobs")
	defer b.end()
	sc := scan{tube: m.tube, from: m.next, to: m.last, bodies: true}
	if err := sc.resolve(ctx, m.from); err != nil {
		return err
	}
	sc.progress = func(done, total uint64) { b.show(done, total, m.copied) }
	err := sc.run(ctx, m.from, func(jobs []found) (bool, error) {
		jobs = slices.DeleteFunc(jobs, func(f found) bool { return m.copies[f.ID].id != 0 })
		m.copied += len(jobs)
		return true, m.copy(ctx, jobs)
	})
	if err != nil {
		return err
	}
	m.next = sc.to + 1
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(m.copies)), scanBatch) {
		if err := m.compare(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// copy puts jobs to the other server.
func (m *mirror) copy(ctx context.Context, found []found) error {
	jobs := make([]job, len(found))
	for i := range found {
		jobs[i] = found[i].exported()
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.Tube, b.Tube) })
	ids, err := putJobs(context.WithoutCancel(ctx), m.to, jobs)
	for i, id := range ids {
		if id != 0 {
			m.copies[jobs[i].ID] = jobCopy{id, jobs[i].Pri, client.State(jobs[i].State)}
		}
	}
	return err
}

// compare brings copies up to date with their jobs.
func (m *mirror) compare(ctx context.Context, ids []uint64) error {
	stats, err := m.from.StatsJobMany(ctx, ids)
	if err := butNotFound(err); err != nil {
		return err
	}
	var gone []uint64
	for i, st := range stats {
		if st == nil {
			gone = append(gone, m.copies[ids[i]].id)
			delete(m.copies, ids[i])
		} else if err := m.update(ctx, st); err != nil {
			return err
		}
	}
	m.removed += len(gone)
	return butNotFound(m.to.DeleteMany(context.WithoutCancel(ctx), gone))
}

// update makes a copy like its job, if that has changed.
func (m *mirror) update(ctx context.Context, st *client.JobStats) error {
	old := m.copies[st.ID]
	state := st.State
	if state == client.StateReserved {
		state = client.StateReady
	}
	switch {
	case state == old.state && st.Pri == old.pri:
		return nil
	case state == client.StateReady && old.state == client.StateDelayed && st.Pri == old.pri:
		// Its delay may be over there too.
		m.copies[st.ID] = jobCopy{old.id, old.pri, state}
		return ignoreNotFound(m.to.KickJob(ctx, old.id))
	}
	body, err := m.from.Peek(ctx, st.ID)
	if err != nil {
		return ignoreNotFound(err) // the next round will see that it has gone
	}
	m.changed++
	// The old copy first, so that nobody gets two.
	if err := m.to.Delete(ctx, old.id); err != nil {
		m.copies[st.ID] = jobCopy{old.id, st.Pri, state}
		return ignoreNotFound(err)
	}
	return m.copy(ctx, []found{{st, body.Body}})
}

func ignoreNotFound(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}
