package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
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
or jobs are done on both servers. It must have no policy with 'unique' either: the only
copy of two equal jobs would go with the first of them.

A mirror knows in its memory only which job is a copy of which. If it stops with an error,
it says how many jobs it has copied. If it goes by ids (on other servers, or with --from)
it also says with which --from ID to go on: every job is then copied at least once, but
the jobs before ID are not looked at again. Where that does not do, clear what was copied
and start over.

` + scanCost

func newMirror() *cobra.Command {
	var opt struct {
		to, token, tokenFile string
		follow               bool
		every                time.Duration
	}
	var sc scan
	s := new(session)
	cmd := s.command("mirror", "", "copy the jobs of a live server to another", func(ctx context.Context, _ []string) error {
		if opt.to == "" || opt.to == s.Server.Addr {
			return cliutil.UsageError("--to is needed: the address of another server")
		}
		if err := sc.check(); err != nil {
			return err
		}
		from, err := s.Server.Dial(ctx)
		if err != nil {
			return err
		}
		defer from.Close()
		options, err := s.Server.Options()
		if err != nil {
			return err
		}
		if err := cliutil.ReadToken(&opt.token, &opt.tokenFile, "to-token"); err != nil {
			return err
		}
		options.Token = cmp.Or(opt.token, os.Getenv("BEANPOLE_TO_TOKEN"), options.Token)
		s.Conn, err = client.Dial(ctx, opt.to, options) // the one that is asked why it refuses jobs
		if err := cliutil.UnreachableError(opt.to, "--to", err); err != nil {
			return err
		}
		m := &mirror{session: s, from: from, to: s.Conn, scan: sc, copies: make(map[uint64]jobCopy)}
		return s.noteDuplicates(ctx, m.to, func() error { return m.run(ctx, opt.follow, opt.every) })
	})
	cmd.Long = mirrorLong
	cmd.Example = "  beanpole mirror --addr old:11300 --to new:11300 --follow"
	f := cmd.Flags()
	f.StringVar(&opt.to, "to", "", "`ADDR` of the other server")
	f.StringVar(&opt.token, "to-token", "", "the `TOKEN` for the other server (that of --token); the\nvariable BEANPOLE_TO_TOKEN does not show in the list of\nprocesses")
	f.StringVar(&opt.tokenFile, "to-token-file", "", "read it from this `FILE`")
	f.StringVarP(&sc.tube, "tube", "t", "", "only this `TUBE` (all)")
	f.BoolVar(&opt.follow, "follow", false, "go on until interrupted")
	cliutil.DurationVar(f, &opt.every, "every", "", 10*time.Millisecond, time.Second, "with --follow: look again after this `TIME`")
	sc.define(cmd)
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails for a flag that is not there
	return cmd
}

// A mirror copies the jobs of a server.
type mirror struct {
	*session
	from, to *client.Conn
	scan     scan // which jobs; from is the first id that was not looked at, where they are found by ids
	copies   map[uint64]jobCopy
	next     uint64 // by ids: the jobs before it were copied

	copied, changed, removed int // jobs
}

func (m *mirror) run(ctx context.Context, follow bool, every time.Duration) error {
	for last := -1; ; {
		before := m.copied + m.changed + m.removed
		err := m.round(ctx)
		switch {
		case follow && ctx.Err() != nil:
			return m.print()
		case err != nil:
			return m.stopped(err)
		case !follow:
			return m.print()
		}
		if before == m.copied+m.changed+m.removed && before != last { // say it once
			m.Note("nothing new; %d jobs are mirrored", len(m.copies))
			last = before
		}
		select {
		case <-ctx.Done():
			return m.print()
		case <-time.After(every):
		}
	}
}

// stopped says how far the mirror has come, and how to go on.
func (m *mirror) stopped(err error) error {
	err = fmt.Errorf("%w; %d jobs were copied", err, m.copied)
	if m.scan.byID {
		return fmt.Errorf("%w; --from %d goes on, and may copy some a second time", err, m.next)
	}
	return fmt.Errorf("%w; to start over, clear what was copied", err)
}

func (m *mirror) print() error {
	return m.Print(map[string]int{"copied": m.copied, "changed": m.changed, "removed": m.removed},
		"copied %d, changed %d, removed %d", m.copied, m.changed, m.removed)
}

// round copies what is new, and looks at all that was copied.
func (m *mirror) round(ctx context.Context) error {
	m.next = max(m.next, m.scan.from, 1)
	listed := make(map[uint64]struct{})
	err := m.session.scan(ctx, m.from, &m.scan, func(jobs []found) error {
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
			return err
		}
		fresh, err := withBodies(ctx, m.from, fresh)
		if err != nil {
			return err
		}
		n, err := m.copy(ctx, fresh)
		m.copied += n
		for i := 0; i < len(fresh) && m.copies[fresh[i].ID].id != 0; i++ {
			m.next = fresh[i].ID + 1
		}
		return err
	})
	if err != nil {
		return err
	}
	if m.scan.byID {
		m.next = m.scan.last + 1
		if m.scan.to == 0 {
			m.scan.from = m.next
		}
	}
	// What was in no list may have changed its state between two of them, and what was
	// copied may have changed since.
	var missing []uint64
	for _, id := range slices.Sorted(maps.Keys(m.copies)) {
		if _, ok := listed[id]; !ok {
			missing = append(missing, id)
		}
	}
	for some := range slices.Chunk(missing, scanBatch) {
		if err := m.compare(ctx, some); err != nil {
			return err
		}
	}
	return nil
}
