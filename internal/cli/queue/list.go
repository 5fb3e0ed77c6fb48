package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
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
	var limit int
	var sc scan
	var tube tubeOption
	cmd := newCommand("jobs", "[TUBE]", "list the jobs of a tube", func(ctx context.Context, s *session, args []string) error {
		if limit < 0 {
			return kit.UsageError("--limit is not negative; 0 is no limit")
		}
		if err := sc.check(); err != nil {
			return err
		}
		wanted, err := states.states()
		if err != nil {
			return err
		}
		if wanted == nil {
			wanted = allStates
		}
		sc.states, sc.bodies = wanted, true
		if sc.tube, err = tube.one(args); err != nil {
			return err
		}
		c, err := s.dialTube(ctx, sc.tube)
		if err != nil {
			return err
		}
		defer c.Close()
		return s.listJobs(ctx, c, sc, limit)
	})
	cmd.Long = jobsLong
	cmd.Example = "  beanpole jobs mail --state buried\n  beanpole jobs mail --limit 0 --json | jq -r .body"
	tube.defineOne(cmd, "the")
	states.define(cmd, allStates, "only those in these")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "list `N` jobs and no more; 0: all")
	sc.define(cmd)
	return cmd
}

// listJobs prints the jobs that a scan finds.
func (s *session) listJobs(ctx context.Context, c *client.Conn, sc scan, limit int) error {
	b := kit.NewBar(s.Err, "jobs")
	defer b.End()
	listed, next := 0, uint64(0) // the id of the first that is not listed
	var rows [][]string
	if limit > 0 {
		sc.first = limit + 1
	}
	byID := sc.byID()
	sc.slow = func() {
		byID = true
		s.Note(slowScan)
	}
	sc.progress = func(done, total uint64) { b.Show(done, total, listed) }
	err := sc.run(ctx, c, func(jobs []found) (bool, error) {
		for i := range jobs {
			if limit > 0 && listed == limit {
				next = jobs[i].ID
				return false, nil
			}
			listed++
			if !s.JSON {
				rows = append(rows, jobs[i].row())
			} else if err := s.PrintJSON(newJob(jobs[i].ID, jobs[i].body, jobs[i].JobStats)); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	b.End()
	if err == nil && !s.JSON {
		columns := []kit.Column{{Title: "ID", Number: true}, {Title: "STATE"}, {Title: "PRI", Number: true}, {Title: "AGE", Number: true}, {Title: "LEFT", Number: true},
			{Title: "TRIES", Number: true}, {Title: "BYTES", Number: true}, {Title: "BODY", Least: 10}}
		err = kit.PrintTable(s.Out, columns, rows)
	}
	switch {
	case next > 0 && byID:
		s.Note("there are more jobs; --limit 0 lists all, --from %d goes on", next)
	case next > 0:
		s.Note("there are more jobs; --limit 0 lists all")
	}
	return err
}

// bodyWidth is how many characters of a body a table shows.
const bodyWidth = 40

// row is a job in a table.
func (f *found) row() []string {
	left := ""
	if f.State == client.StateDelayed || f.State == client.StateReserved {
		left = f.TimeLeft.String()
	}
	return []string{
		strconv.FormatUint(f.ID, 10), string(f.State), strconv.FormatUint(uint64(f.Priority), 10), f.Age.Round(time.Second).String(),
		left, strconv.FormatUint(f.Reserves, 10), strconv.Itoa(len(f.body)), beginning(f.body),
	}
}

// beginning returns that of a body, in one line.
func beginning(body []byte) string {
	text := []rune(strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(body[:min(len(body), 4*bodyWidth)])))
	if len(text) > bodyWidth || len(body) > 4*bodyWidth {
		text = append(text[:min(len(text), bodyWidth-1)], '…')
	}
	return string(text)
}
