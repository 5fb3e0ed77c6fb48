package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const jobsLong = `List the jobs of a tube with the beginnings of their bodies. With --json each is an
object with its whole body, as 'beanpole peek --json' prints it. The jobs of beanpole
come by state, ready ones as they would be reserved, delayed and reserved ones by the
time that is left, buried ones as they were buried; those of other servers by ascending
ids.

No job is changed on the server.

` + scanCost

func newJobs() *cobra.Command {
	var states stateOption
	var limit uint
	var sc scan
	s := new(session)
	cmd := s.command("jobs", "[TUBE]", "list the jobs of a tube", func(ctx context.Context, args []string) error {
		err := sc.check()
		if err != nil {
			return err
		}
		if sc.states = states.given; sc.states == nil {
			sc.states = allStates
		}
		if sc.tube, err = s.oneTube(args); err != nil {
			return err
		}
		if _, err := s.connectTube(ctx, sc.tube); err != nil {
			return err
		}
		return s.listJobs(ctx, &sc, int(limit))
	})
	cmd.Long = jobsLong
	cmd.Example = "  beanpole jobs mail --state buried\n  beanpole jobs mail --limit 0 --json | jq -r .body"
	s.defineTube(cmd, "the `TUBE`, like the argument")
	states.define(cmd, allStates, "only those in these")
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list `N` jobs and no more; 0: all")
	sc.define(cmd)
	return cmd
}

// listJobs prints the jobs that a scan finds.
func (s *session) listJobs(ctx context.Context, sc *scan, limit int) error {
	next := uint64(0) // the id of the first that is not listed
	if limit > 0 {
		sc.first = limit + 1
	}
	list := jobList{session: s, ofOne: true}
	err := s.scan(ctx, s.Conn, sc, func(jobs []found) error {
		jobs, err := withBodies(ctx, s.Conn, jobs)
		for i := 0; i < len(jobs) && err == nil; i++ {
			if limit > 0 && list.n == limit {
				next = jobs[i].ID
				return errEnough
			}
			j := newJob(jobs[i].ID, jobs[i].body, jobs[i].JobStats)
			err = list.add(&j)
		}
		return err
	})
	if err == nil {
		err = list.print()
	}
	switch {
	case next > 0 && sc.byID:
		s.Note("there are more jobs; --limit 0 lists all, --from %d goes on", next)
	case next > 0:
		s.Note("there are more jobs; --limit 0 lists all")
	}
	return err
}

// A jobList prints jobs: each at once as JSON, or all in a table.
type jobList struct {
	*session
	ofOne bool // tube
	n     int  // jobs
	rows  [][]any
}

func (l *jobList) add(j *jobjson.Job) error {
	l.n++
	if l.JSON {
		return l.PrintJSON(j)
	}
	row := []any{j.ID, j.Tube, j.State, j.Priority, ofSeconds(j.Age), nil, j.Reserves, j.Size, beginning(j.Bytes())}
	if j.State == string(client.StateDelayed) || j.State == string(client.StateReserved) {
		row[5] = ofSeconds(j.TimeLeft)
	}
	if l.ofOne {
		row = slices.Delete(row, 1, 2)
	}
	l.rows = append(l.rows, row)
	return nil
}

// print prints the table.
func (l *jobList) print() error {
	switch {
	case l.JSON:
		return nil
	case l.ofOne:
		return cliutil.PrintTable(l.Out, "ID STATE PRI AGE LEFT TRIES BYTES BODY:10", l.rows)
	}
	return cliutil.PrintTable(l.Out, "ID TUBE:8 STATE PRI AGE LEFT TRIES BYTES BODY:10", l.rows)
}

// bodyWidth is how many characters of a body a table shows.
const bodyWidth = 40

// beginning returns that of a body, in one line.
func beginning(body []byte) string {
	text := []rune(strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(body[:min(len(body), 4*bodyWidth)])))
	if len(text) > bodyWidth || len(body) > 4*bodyWidth {
		text = append(text[:min(len(text), bodyWidth-1)], '…')
	}
	return string(text)
}
