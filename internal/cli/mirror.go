package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

const mirrorLong = `Copy the jobs of a live server to another one, to migrate. The first server is only read,
apart from what is said below. In the other one each job gets a new id, and its counters
start at zero. The connection options are for both servers.

Jobs change while they are copied. So when all have been copied, each is looked at again:

  new             it is copied
  gone            its copy is deleted, if nobody has taken it there
  kicked, buried,
  new priority,
  new delay,
  other tube      its copy becomes the same; if somebody has taken it there, it stays
  reserved        its copy is ready: that is what it becomes without its worker

A delay is new if the job is to be ready at another time, by more than the second or so
that cannot be told. With --follow this is repeated until you stop it. To migrate without
losing a job or doing one twice: run it with --follow; stop the producers and let them put
to the other server; stop the workers; when a round finds nothing new, stop the mirror;
start the workers at the other server. Until then the other server must have no workers,
or jobs are done on both servers.

With --progress FILE it can be run again after it was killed, or has lost a server. Then
it goes on where it was, and when a round finds nothing new each job of the first server
has exactly one copy. FILE says which job is a copy of which, in about 100 bytes for each
job, and what is about to be put or deleted at the other server; that is written and
synced before it is done. If it was stopped while it put a batch, it looks at the jobs of
the other server that are newer than the batch before. Those that are equal to a job of
the batch in tube, priority, time to run and body count as its copies. That is right if
no client takes jobs from the other server, or puts jobs there that are equal in all that.
The mirror stops if one of the servers has restarted without its jobs.

Without --progress all that is in memory only: if the mirror is killed, clear what it has
copied and start over.

` + scanCost

func newMirror() *cobra.Command {
	var opt struct {
		to, token, tokenFile string
		progress             string
		follow               bool
		every                time.Duration
	}
	var sc scan
	cmd := newCommand("mirror", "", "copy the jobs of a live server to another; can be resumed", func(ctx context.Context, s *session, _ []string) error {
		if opt.to == "" || opt.to == s.server.addr {
			return usageError("--to is needed: the address of another server")
		}
		if err := sc.check(); err != nil {
			return err
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
		if err := readToken(&opt.token, &opt.tokenFile, "to-token"); err != nil {
			return err
		}
		options.Token = cmp.Or(opt.token, os.Getenv("BEANPOLE_TO_TOKEN"), options.Token)
		to, err := client.Dial(ctx, opt.to, options)
		if err := nobodyThere(opt.to, "--to", err); err != nil {
			return err
		}
		defer to.Close()
		m := &mirror{session: s, from: from, to: to, scan: sc}
		if err := m.resume(ctx, opt.progress); err != nil {
			return err
		}
		err = m.run(ctx, opt.follow, opt.every)
		if err != nil && opt.progress != "" {
			err = fmt.Errorf("%w; the same command goes on from there", err)
		}
		return errors.Join(err, m.log.close())
	})
	cmd.Long = mirrorLong
	cmd.Example = "  beanpole mirror --addr old:11300 --to new:11300 --follow --progress old-to-new"
	f := cmd.Flags()
	f.StringVar(&opt.to, "to", "", "`ADDR` of the other server")
	f.StringVar(&opt.token, "to-token", "", "the `TOKEN` for the other server (that of --token); the\nvariable BEANPOLE_TO_TOKEN does not show in the list of\nprocesses")
	f.StringVar(&opt.tokenFile, "to-token-file", "", "read it from this `FILE`")
	f.StringVarP(&sc.tube, "tube", "t", "", "only this `TUBE` (all)")
	f.StringVar(&opt.progress, "progress", "", "keep in this `FILE` what is copied, to go on when it\nis run again")
	f.BoolVar(&opt.follow, "follow", false, "go on until interrupted")
	durationVar(f, &opt.every, "every", "", 10*time.Millisecond, time.Second, "with --follow: look again after this `TIME`")
	sc.define(cmd)
	return cmd
}

// A mirror copies the jobs of a server.
type mirror struct {
	*session
	from, to *client.Conn
	scan     scan // which jobs; from is the first id that was not looked at, where they are found by ids
	byID     bool // the server cannot list them
	copies   map[uint64]jobCopy
	log      *mirrorLog
	after    uint64 // the newest id of the other server that is known

	copied, changed, removed int // jobs
}

// resume goes on from where an earlier run with the same file has come to.
func (m *mirror) resume(ctx context.Context, file string) error {
	head := mirrorHead{From: m.from.Addr(), To: m.to.Addr(), Tube: m.scan.tube}
	st, err := loadMirror(file, head)
	if err != nil {
		return err
	}
	m.copies = st.copies
	if file != "" {
		newest, err := newestID(ctx, m.to)
		if err != nil {
			return fmt.Errorf("the other server: %w", err)
		}
		m.after = newest
		if err := m.settle(ctx, &st, newest, file); err != nil {
			return err
		}
	}
	m.log, err = openMirror(file, head, &st)
	return err
}

// settle finds out what has become of what an earlier run was about to do.
func (m *mirror) settle(ctx context.Context, st *mirrorState, newest uint64, file string) error {
	if !st.known {
		return nil
	}
	var highest, source uint64
	for id, c := range st.copies {
		highest, source = max(highest, c.id), max(source, id)
	}
	if st.batch != nil {
		highest = max(highest, st.batch.After)
	}
	if newest <= highest {
		return fmt.Errorf("%s has restarted without its jobs: its newest id is %d, and was %d; to copy all again, remove %s", m.to.Addr(), newest, highest, file)
	}
	switch id, err := newestID(ctx, m.from); {
	case errors.Is(err, client.ErrDraining): // it does not tell
	case err != nil:
		return err
	case id <= source:
		return fmt.Errorf("%s has restarted without its jobs: its newest id is %d, and was %d; to copy all again, clear what was copied and remove %s", m.from.Addr(), id, source, file)
	}
	for source := range st.redo {
		if c, ok := st.copies[source]; ok {
			if err := ignoreNotFound(m.to.Delete(ctx, c.id)); err != nil {
				return err
			}
			delete(st.copies, source)
		}
	}
	if st.batch == nil {
		return nil
	}
	waiting := make(map[string][]mirrorCopy)
	for _, c := range st.batch.Jobs {
		waiting[c.Key] = append(waiting[c.Key], c)
	}
	sc := scan{from: st.batch.After + 1, to: newest - 1, bodies: true}
	return sc.ids(ctx, m.to, func(jobs []found) (bool, error) {
		for i := range jobs {
			key := mirrorKey(jobs[i].Tube, jobs[i].Priority, seconds(jobs[i].TTR), jobs[i].body)
			if len(waiting[key]) == 0 {
				continue
			}
			c := waiting[key][0]
			waiting[key] = waiting[key][1:]
			c.Copy = jobs[i].ID
			st.copies[c.Source] = c.jobCopy()
			if c.State == client.StateBuried {
				if err := buryAfterKill(ctx, m.to, c.Copy, c.Pri); err != nil {
					return false, err
				}
			}
		}
		return true, nil
	})
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

// round copies what is new, and looks at all that was copied.
func (m *mirror) round(ctx context.Context) error {
	b := m.newBar("jobs")
	defer b.end()
	sc := m.scan
	sc.progress = func(done, total uint64) { b.show(done, total, m.copied) }
	if !m.byID && sc.from <= 1 && sc.to == 0 {
		err := m.lists(ctx, sc)
		if !errors.Is(err, client.ErrUnknownCommand) {
			return err
		}
		m.note(slowScan)
		m.byID = true
	}
	if err := sc.resolve(ctx, m.from); err != nil {
		return err
	}
	sc.bodies = true
	err := sc.ids(ctx, m.from, func(jobs []found) (bool, error) {
		jobs = slices.DeleteFunc(jobs, func(f found) bool { return m.copies[f.ID].id != 0 })
		m.copied += len(jobs)
		return true, m.copy(ctx, jobs)
	})
	if err != nil {
		return err
	}
	if m.scan.to == 0 {
		m.scan.from = sc.to + 1
	}
	return m.compareAll(ctx, slices.Sorted(maps.Keys(m.copies)))
}

// lists is a round with a server that lists its jobs.
func (m *mirror) lists(ctx context.Context, sc scan) error {
	if err := sc.count(ctx, m.from); err != nil {
		return ignoreNotFound(err)
	}
	listed := make(map[uint64]struct{})
	err := sc.pages(ctx, m.from, func(jobs []found) (bool, error) {
		var fresh, known []found
		for i := range jobs {
			if m.copies[jobs[i].ID].id == 0 {
				fresh = append(fresh, jobs[i])
			} else {
				known = append(known, jobs[i])
				listed[jobs[i].ID] = struct{}{}
			}
		}
		if err := m.update(ctx, known); err != nil {
			return false, err
		}
		fresh, err := withBodies(ctx, m.from, fresh)
		if err != nil {
			return false, err
		}
		m.copied += len(fresh)
		return true, m.copy(ctx, fresh)
	})
	if err != nil {
		return err
	}
	// What was in no list may have changed its state between two of them, and what was
	// copied may have changed since.
	var missing []uint64
	for _, id := range slices.Sorted(maps.Keys(m.copies)) {
		if _, ok := listed[id]; !ok {
			missing = append(missing, id)
		}
	}
	return m.compareAll(ctx, missing)
}
