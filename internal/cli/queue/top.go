package queue

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cli/top"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func newTop() *cobra.Command {
	var every time.Duration
	s := &cliutil.Session{}
	cmd := s.Command("top", "", "watch the tubes of a server live", func(ctx context.Context, _ []string) error {
		if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
			return exit.UsageError("top requires a terminal; 'beanpole tubes' prints a table")
		}
		s.Server.Reconnect = every
		err := s.Connect(ctx)
		if err != nil {
			return err
		}
		t := &topServer{Session: s, ctx: ctx}
		if t.admin, err = s.FindAdminClient(); err != nil {
			return err
		}
		if t.admin != nil && s.GivenAdmin() == "" { // an API whose address was not given must not refuse the client
			if _, err := t.admin.GetAttention(ctx, &admin.GetAttention{Limit: 1}); err != nil {
				t.admin = nil
			}
		}
		return top.Run(ctx, t, s.Server.Addr, every, os.Stdin, os.Stdout)
	})
	cmd.Long = topLong
	cmd.Example = "  beanpole top\n  beanpole top --every 5s"
	cliutil.DurationVar(cmd.Flags(), &every, "every", "", 100*time.Millisecond, time.Second, "update after this `TIME`")
	s.DefineAdmin(cmd)
	return cmd
}

const topLong = `Watch the tubes of a server: jobs by state, waiting and watching workers, puts and deletes per
second. Tubes that need attention come first. The key ? shows the keys to sort, filter, show
a job, pause and kick.

With the admin API of a beanpole server, top also shows the server's findings and the age of the
next job. It connects again when the server restarts.`

// A topServer implements top.Server.
type topServer struct {
	*cliutil.Session
	ctx   context.Context
	admin *admin.Client // nil if there is no admin API
}

// Snapshot implements top.Server.
func (t *topServer) Snapshot() (top.Snapshot, error) {
	snap, err := t.snapshot()
	return snap, t.Server.Explain(t.ctx, err)
}

func (t *topServer) snapshot() (snap top.Snapshot, err error) {
	st, err := t.Conn.Stats(t.ctx)
	if err != nil {
		return snap, err
	}
	snap = top.Snapshot{At: time.Now(), ServerStats: *st}
	if t.admin != nil {
		return snap, t.addTubes(&snap)
	}
	names, err := t.Conn.ListTubes(t.ctx)
	if err != nil {
		return snap, err
	}
	tubes, err := statsOf(t.ctx, t.Conn, names)
	for _, st := range tubes {
		snap.Tubes = append(snap.Tubes, top.Tube{Tube: tubeOf(st)})
	}
	return snap, err
}

// addTubes adds the tubes and the findings of the admin API.
func (t *topServer) addTubes(snap *top.Snapshot) error {
	tubes, err := findTubes(t.ctx, t.admin, nil)
	if err != nil {
		return err
	}
	for i := range tubes {
		snap.Tubes = append(snap.Tubes, top.Tube{Tube: tubes[i].Tube})
	}
	attention, err := t.admin.GetAttention(t.ctx, &admin.GetAttention{Limit: 10_000, Each: true})
	snap.Found = attention.Findings
	return err
}

// Pause implements top.Server.
func (t *topServer) Pause(tube string, d time.Duration) error {
	return t.Server.Explain(t.ctx, t.Conn.PauseTube(t.ctx, tube, d))
}

// Kick implements top.Server.
func (t *topServer) Kick(tube string, count int) (int, error) {
	n, err := t.Conn.Kick(t.ctx, tube, count)
	return n, t.Server.Explain(t.ctx, err)
}

// Look implements top.Server.
func (t *topServer) Look(tube, state string) (string, error) {
	id, body, err := t.Conn.PeekTube(t.ctx, tube, client.State(state))
	if err != nil {
		return "no job is " + state, t.Server.Explain(t.ctx, ignoreNotFound(err))
	}
	job, err := withStats(t.ctx, t.Conn, t.admin, id, body)
	return fmt.Sprintf("%s\n%d bytes:\n\n%s", describe(&job), len(body), printable(body)), t.Server.Explain(t.ctx, err)
}
