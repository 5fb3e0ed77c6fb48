package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/cli/top"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

func newTop() *cobra.Command {
	var every time.Duration
	var admin kit.AdminPages
	cmd := new(session).command("top", "", "watch the tubes of a server live", func(ctx context.Context, s *session, _ []string) error {
		if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
			return kit.UsageError("top needs a terminal ('beanpole tubes' prints the same once)")
		}
		s.Server.Reconnect = every
		err := s.connect(ctx)
		if err != nil {
			return err
		}
		t := &topServer{session: s, ctx: ctx}
		if admin.Addr != "" {
			if t.pages, err = admin.Client(&s.Server); err != nil {
				return err
			}
		}
		return top.Run(ctx, t, s.Server.Addr, every, os.Stdin, os.Stdout)
	})
	cmd.Long = topLong
	cmd.Example = "  beanpole top\n  beanpole top --admin :11380"
	kit.DurationVar(cmd.Flags(), &every, "every", "", 100*time.Millisecond, time.Second, "ask the server again after this `TIME`")
	admin.Define(cmd.Flags(), "", countsUsage)
	return cmd
}

const topLong = `Watch the tubes of a server: their jobs, how old the job is that is next to be
reserved, who waits for jobs and who would take them, what is put and deleted a second,
and what was buried since this began. Tubes that need attention come first. The key ? shows the
other keys: they sort and filter, show a job, and pause, kick and clear, which ask first.

If the connection is lost, another one is made when the server is there again.

Each time the server is asked for the statistics of each tube, and for the next job of
100 tubes: those on the screen, and those with the most ready jobs.`

// agesAtOnce is of how many tubes top asks for the next job.
const agesAtOnce = 100

// A topServer asks a server for what top shows.
type topServer struct {
	*session
	ctx   context.Context
	mu    sync.Mutex    // what follows uses a tube for more than one command
	plain bool          // the server has no list-jobs
	pages *admin.Client // nil: nobody has said where they are
}

// Snapshot implements top.Server.
func (t *topServer) Snapshot(onScreen []string) (top.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	snap, err := t.snapshot(onScreen)
	return snap, t.Server.Explain(t.ctx, err)
}

func (t *topServer) snapshot(onScreen []string) (snap top.Snapshot, err error) {
	st, err := t.conn.Stats(t.ctx)
	if err != nil {
		return snap, err
	}
	snap = top.Snapshot{At: time.Now(), ServerStats: *st}
	counts := make(map[string]tubeCounts)
	if t.pages != nil {
		if counts, err = countsOf(t.ctx, t.pages); err != nil {
			return snap, err
		}
	}
	tubes, _, err := loadTubes(t.ctx, t.conn, nil)
	if err != nil {
		return snap, err
	}
	for _, st := range tubes {
		more := counts[st.Name]
		snap.Tubes = append(snap.Tubes, top.Tube{TubeStats: *st, Timeouts: more.Timeouts, Releases: more.Releases, Bytes: more.BodyBytes, Waits: ofSeconds(more.Oldest)})
	}
	return snap, t.ages(snap.Tubes, onScreen)
}

// ages finds out how old the next jobs are, of the tubes that are on the screen, and of
// those that have the most.
func (t *topServer) ages(tubes []top.Tube, onScreen []string) error {
	var most []*top.Tube
	for i := range tubes {
		if tubes[i].JobsReady > 0 {
			most = append(most, &tubes[i])
		}
	}
	seen := make(map[string]int, len(onScreen))
	for _, name := range onScreen {
		seen[name] = 1
	}
	slices.SortStableFunc(most, func(a, b *top.Tube) int {
		return cmp.Or(cmp.Compare(seen[b.Name], seen[a.Name]), cmp.Compare(b.JobsReady, a.JobsReady))
	})
	most = most[:min(len(most), agesAtOnce)]
	for _, tb := range most {
		switch age, err := t.age(tb.Name); {
		case err == nil:
			tb.Age, tb.AgeKnown = age, true
		case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrUnauthorized):
		default:
			return err
		}
	}
	if t.plain && len(most) > 0 {
		return t.conn.Use(t.ctx, defaultTube) // the last one would not go while it is used
	}
	return nil
}

// defaultTube is what a connection uses that uses no other.
const defaultTube = "default"

// age returns how old the job is that is next to be reserved from a tube.
func (t *topServer) age(tube string) (time.Duration, error) {
	if !t.plain {
		jobs, err := t.conn.ListJobs(t.ctx, client.Selection{Tube: tube, State: client.StateReady, Limit: 1}, "")
		switch {
		case err == nil && len(jobs) == 0:
			return 0, client.ErrNotFound
		case err == nil:
			return jobs[0].Age, nil
		case !errors.Is(err, client.ErrUnknownCommand):
			return 0, err
		}
		t.plain = true
	}
	j, err := peekState(t.ctx, t.conn, tube, client.StateReady)
	if err != nil {
		return 0, err
	}
	st, err := t.conn.StatsJob(t.ctx, j.ID)
	if err != nil {
		return 0, err
	}
	return st.Age, nil
}

// Pause implements top.Server.
func (t *topServer) Pause(tube string, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Server.Explain(t.ctx, t.conn.PauseTube(t.ctx, tube, d))
}

// Kick implements top.Server.
func (t *topServer) Kick(tube string, count int) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err = t.conn.Use(t.ctx, tube); err == nil {
		n, err = t.conn.Kick(t.ctx, count)
	}
	return n, t.Server.Explain(t.ctx, err)
}

// Clear implements top.Server.
func (t *topServer) Clear(tube, state string) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = clearState(t.ctx, t.conn, tube, client.State(state), func(m int) { n += m }, func() {})
	return n, t.Server.Explain(t.ctx, err)
}

// Look implements top.Server.
func (t *topServer) Look(tube, state string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, err := peekState(t.ctx, t.conn, tube, client.State(state))
	if errors.Is(err, client.ErrNotFound) {
		return "no job is " + state, nil
	}
	var job jobjson.Job
	if err == nil {
		job, err = known(t.ctx, t.conn, j)
	}
	return fmt.Sprintf("%s\n%d bytes:\n\n%s", describe(&job), len(j.Body), printable(j.Body)), t.Server.Explain(t.ctx, err)
}
