package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const connectionsLong = `List the connected clients. IDLE is the time since the last command (LAST), JOBS the number of
jobs that the client holds, and HELD the time it has held them.

With --close, close the connections: their jobs become ready. The command asks for
confirmation, unless --yes is given.`

// A connectionFilter selects connections.
type connectionFilter struct {
	ids              []uint64
	tubes            []string
	text             string
	job              uint64
	holding, waiting bool
	idle             time.Duration
}

func newConnections() *cobra.Command {
	var f connectionFilter
	var remove bool
	s := new(session)
	cmd := s.adminCommand("connections", "[ID...]", "list the connected clients, or close some", connectionsLong, func(ctx context.Context, a *admin.Client, args []string) (err error) {
		if f.ids, err = parseIDs(args, "connection"); err != nil {
			return err
		}
		if remove && f.isAll() {
			return exit.UsageError("--close requires ids, or an option that selects connections")
		}
		found, err := f.find(ctx, a)
		if err != nil {
			return err
		}
		if !remove {
			return s.printConnections(found)
		}
		return s.closeAll(ctx, a, found)
	})
	cmd.Example = "  beanpole connections --holding\n  beanpole connections --idle 1h --tube default\n  beanpole connections --job 17\n  beanpole connections --find 10.0.0.7: --close"
	fs := cmd.Flags()
	fs.StringSliceVarP(&f.tubes, "tube", "t", nil, "select clients that use or watch one of `TUBES`; * stands\nfor any characters, ? for one")
	fs.StringVarP(&f.text, "find", "q", "", "select clients with `TEXT` in their address or identity")
	fs.Uint64Var(&f.job, "job", 0, "select the client that holds the job `ID`")
	fs.BoolVar(&f.holding, "holding", false, "select clients that hold jobs")
	fs.BoolVar(&f.waiting, "waiting", false, "select clients that wait for a job")
	cliutil.DurationVar(fs, &f.idle, "idle", "", 0, 0, "select clients that have sent no command for this `TIME`,\nsuch as 10m, and do not wait for a job")
	fs.BoolVar(&remove, "close", false, "close the selected connections")
	s.DefineYes(cmd)
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails only for an undefined flag
	return cmd
}

// isAll reports whether the filter selects all connections.
func (f *connectionFilter) isAll() bool {
	return len(f.ids) == 0 && len(f.tubes) == 0 && f.text == "" && f.job == 0 && !f.holding && !f.waiting && f.idle == 0
}

// find returns the selected connections.
func (f *connectionFilter) find(ctx context.Context, a *admin.Client) (found []admin.Connection, err error) {
	if f.job != 0 {
		j, err := a.GetJob(ctx, &admin.OfJob{Job: f.job})
		if err != nil {
			return nil, err
		}
		if j.ReservedBy == 0 {
			return nil, exit.NotFoundError("no connection holds job %d: it is %s", j.ID, j.State)
		}
		f.ids = append(f.ids, j.ReservedBy)
	}
	if len(f.ids) > 0 && len(f.tubes) == 0 && f.text == "" && !f.holding && !f.waiting {
		for _, id := range f.ids {
			c, err := a.GetConnection(ctx, &admin.OfConnection{Connection: id})
			if err != nil {
				return nil, err
			}
			found = append(found, c)
		}
	} else {
		// The server must select by tubes, because its answer contains at most a hundred
		// watched tubes per client.
		in := admin.ListConnections{Limit: 1000, Holding: f.holding, Waiting: f.waiting, Q: f.text, Tube: strings.Join(f.tubes, ",")}
		for more := true; more; more = in.Cursor != "" {
			page, err := a.ListConnections(ctx, &in)
			if err != nil {
				return nil, err
			}
			found = append(found, page.Connections...)
			in.Cursor = page.Next
		}
	}
	found = slices.DeleteFunc(found, func(c admin.Connection) bool {
		return f.idle > 0 && (c.Waiting || c.Idle < seconds(f.idle)) || len(f.ids) > 0 && !slices.Contains(f.ids, c.ID)
	})
	slices.SortFunc(found, func(a, b admin.Connection) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

func (s *session) printConnections(found []admin.Connection) error {
	return cliutil.PrintList(&s.Session, found, "ID ADDRESS IDENTITY AGE IDLE LAST USING WATCHING:10 JOBS HELD ACTIVITY", func(c *admin.Connection) []any {
		watching := strings.Join(c.Watching, ",")
		if more := c.WatchingCount - len(c.Watching); more > 0 {
			watching = fmt.Sprintf("%s +%d", watching, more)
		}
		var held any
		if c.HoldingCount > 0 {
			held = cliutil.OfSeconds(c.HeldFor)
		}
		return []any{c.ID, c.Address, c.Identity, cliutil.OfSeconds(c.Age), cliutil.OfSeconds(c.Idle), c.LastCommand, c.Using, watching, c.HoldingCount, held, activity(c)}
	})
}

// activity describes the activity of a connection.
func activity(c *admin.Connection) string {
	switch {
	case c.Waiting:
		return "waiting " + cliutil.OfSeconds(c.Waited).String()
	case c.Producer && c.Worker:
		return "producer, worker"
	case c.Producer:
		return "producer"
	case c.Worker:
		return "worker"
	}
	return ""
}

// closeAll closes connections.
func (s *session) closeAll(ctx context.Context, a *admin.Client, all []admin.Connection) error {
	jobs := 0
	for i := range all {
		jobs += all[i].HoldingCount
	}
	if len(all) > 0 {
		if err := s.Confirm(fmt.Sprintf("Close %s and make %s ready?", cliutil.Count(len(all), "connection"), cliutil.Count(jobs, "job"))); err != nil {
			return err
		}
	}
	closed := uint64(0)
	for i := range all {
		switch err := a.CloseConnection(ctx, &admin.OfConnection{Connection: all[i].ID}); {
		case err == nil:
			closed++
		case !isNotFound(err): // otherwise, the connection is already closed
			return err
		}
	}
	return s.printCount("closed", closed)
}

const drainLong = `Refuse new jobs: the server answers puts with DRAINING. Other commands work. 'beanpole
undrain' or a restart of the server ends it.`

// newDraining returns the command drain or undrain.
func newDraining(name, short, long, done string, do func(*admin.Client, context.Context) error) *cobra.Command {
	s := new(session)
	cmd := s.adminCommand(name, "", short, long, func(ctx context.Context, a *admin.Client, _ []string) error {
		if err := do(a, ctx); err != nil {
			return err
		}
		return s.Print(map[string]bool{"draining": name == "drain"}, "%s", done)
	})
	cmd.Example = "  beanpole " + name
	return cmd
}
