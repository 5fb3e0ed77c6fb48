package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/top"
)

func newTop() *cobra.Command {
	var every time.Duration
	cmd := new(session).command("top", "", "watch the tubes of a server live", func(ctx context.Context, s *session, _ []string) error {
		if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
			return usageError("top needs a terminal ('beanpole tubes' prints the same once)")
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return top.Run(ctx, &topServer{ctx: ctx, conn: c}, s.server.addr, every, os.Stdin, os.Stdout)
	})
	cmd.Long = "Watch the tubes of a server, their jobs and what is done in them. The key ? shows the\nother keys: they sort and filter, pause, kick, clear, and show a job."
	durationVar(cmd.Flags(), &every, "every", "", 100*time.Millisecond, time.Second, "ask the server again after this `TIME`")
	return cmd
}

// A topServer asks a server for what top shows.
type topServer struct {
	ctx  context.Context
	mu   sync.Mutex // what follows uses a tube for more than one command
	conn *client.Conn
}

// Snapshot implements top.Server.
func (t *topServer) Snapshot() (top.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st, err := t.conn.Stats(t.ctx)
	if err != nil {
		return top.Snapshot{}, err
	}
	snap := top.Snapshot{
		At:          time.Now(),
		Version:     "beanstalkd " + st.Version,
		Uptime:      st.Uptime,
		Connections: st.Connections,
		Waiting:     st.Waiting,
		Ready:       st.JobsReady,
		Reserved:    st.JobsReserved,
		Delayed:     st.JobsDelayed,
		Buried:      st.JobsBuried,
		Draining:    st.Draining,
	}
	if st.Server != "" {
		snap.Version = st.Server + " " + st.ServerVersion
	}
	tubes, _, err := loadTubes(t.ctx, t.conn, nil)
	for _, tb := range tubes {
		snap.Tubes = append(snap.Tubes, top.Tube{
			Name: tb.Name, Ready: tb.Ready, Reserved: tb.Reserved, Delayed: tb.Delayed, Buried: tb.Buried, Waiting: tb.Waiting,
			Puts: tb.TotalJobs, Deletes: tb.Deletes, PauseLeft: time.Duration(tb.PauseLeft) * time.Second,
		})
	}
	return snap, err
}

// Pause implements top.Server.
func (t *topServer) Pause(tube string, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn.PauseTube(t.ctx, tube, d)
}

// Kick implements top.Server.
func (t *topServer) Kick(tube string, count int) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.conn.Use(t.ctx, tube); err != nil {
		return 0, err
	}
	return t.conn.Kick(t.ctx, count)
}

// Clear implements top.Server.
func (t *topServer) Clear(tube, state string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return clearState(t.ctx, t.conn, tube, client.State(state), func(int) {}, func() {})
}

// Look implements top.Server.
func (t *topServer) Look(tube, state string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, err := peekState(t.ctx, t.conn, tube, client.State(state))
	if errors.Is(err, client.ErrNotFound) {
		return "no job is " + state, nil
	}
	if err != nil {
		return "", err
	}
	st, err := j.Stats(t.ctx)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "job %d", j.ID)
	if err == nil {
		fmt.Fprintf(&text, ", priority %d, age %s, time to run %s", st.Pri, st.Age, st.TTR)
		if st.State == client.StateDelayed {
			fmt.Fprintf(&text, ", ready in %s", st.TimeLeft)
		}
		fmt.Fprintf(&text, "\nreserved %d times, timed out %d, released %d, buried %d, kicked %d",
			st.Reserves, st.Timeouts, st.Releases, st.Buries, st.Kicks)
	}
	fmt.Fprintf(&text, "\n%d bytes:\n\n%s", len(j.Body), printable(j.Body))
	return text.String(), nil
}
