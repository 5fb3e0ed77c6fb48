package queue

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
)

const exportLong = `Write the jobs of a tube, or of all tubes, one JSON object a line. 'beanpole import'
reads them, and 'beanpole put --ndjson'.

Nothing is changed on the server. A job that a worker holds is written as ready, since
that is what it becomes without its worker; a note says how many there were. Of a
delayed job the delay that is left is written. The jobs of beanpole come in the order of
their tubes and states, so that an import keeps the order of those that are buried;
those of other servers by ascending ids.

No job is written twice. Jobs that come or go while this runs may be written or not, and
so may those of beanpole that change their state more than once meanwhile; what is
written is how they were when they were looked at. Pause what puts and takes jobs if you
need one moment of all.

An interrupted export has changed nothing, so it can be run again. By ids (see below) it
can also go on: with --from, at the id after that of the last whole line.

` + scanCost

func newExport() *cobra.Command {
	var sc scan
	s := new(session)
	cmd := s.command("export", "[TUBE]", "write the jobs of a tube or of all, as JSON", func(ctx context.Context, args []string) (err error) {
		if err := sc.check(); err != nil {
			return err
		}
		if len(args)+len(s.tubes) > 0 {
			if sc.tube, err = s.oneTube(args); err != nil {
				return err
			}
		}
		if err = s.Connect(ctx); err == nil && sc.tube != "" {
			_, err = s.Conn.StatsTube(ctx, sc.tube)
		}
		if err != nil {
			return err
		}
		return s.export(ctx, s.Conn, &sc)
	})
	cmd.Long = exportLong
	cmd.Example = "  beanpole export mail >mail.ndjson\n  beanpole export >all.ndjson"
	s.defineTube(cmd, "only the `TUBE`, like the argument")
	sc.define(cmd)
	return cmd
}

func (s *session) export(ctx context.Context, c *client.Conn, sc *scan) error {
	reserved := 0
	err := s.scan(ctx, c, sc, func(jobs []found) error {
		jobs, err := withBodies(ctx, c, jobs)
		for i := 0; i < len(jobs) && err == nil; i++ {
			if jobs[i].State == client.StateReserved {
				reserved++
			}
			err = s.PrintJSON(jobs[i].exported())
		}
		return err
	})
	if reserved > 0 {
		s.Note("%d of the jobs were reserved; they are written as ready", reserved)
	}
	return err
}

// exported returns a job as it is without the worker that may hold it.
func (f *found) exported() jobjson.Job {
	j := newJob(f.ID, f.body, f.JobStats)
	if f.State == client.StateReserved {
		j.State, j.TimeLeft = string(client.StateReady), 0
	}
	return j
}
