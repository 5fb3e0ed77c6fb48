package queue

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// A session is what a command works with.
type session struct {
	kit.Session
	printed bool // a job was, so the next comes below a blank line
}

// connectTube connects to the server and looks at a tube, which must be there: many commands
// would make it.
func (s *session) connectTube(ctx context.Context, tube string) (*client.TubeStats, error) {
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	return s.Conn.StatsTube(ctx, tube)
}

// connectTubes connects, and returns the names of the tubes that names and patterns stand for
// on that server; see expand.
func (s *session) connectTubes(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, errNoTube
	}
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	return expand(ctx, s.Conn, names)
}

// A runner is what a command does.
type runner func(ctx context.Context, s *session, args []string) error

// newCommand returns a command that needs a server, and can print JSON. args are what it
// takes besides options, by name: "ID..." is one or more, "[ID]" may be missing.
func newCommand(name, args, short string, run runner) *cobra.Command {
	s := &session{}
	cmd := s.Command(name, args, short, func(ctx context.Context, args []string) error { return run(ctx, s, args) })
	s.DefineJSON(cmd)
	return cmd
}

// newAdminCommand is newCommand for one that asks the admin pages of a beanpole, and pages where
// they are. long is its help, to which is added that it needs them.
func newAdminCommand(name, args, short, long string, run func(ctx context.Context, s *session, a *admin.Client, args []string) error) (cmd *cobra.Command, pages *kit.AdminPages) {
	s := &session{}
	cmd, pages = s.AdminCommand(name, args, short, func(ctx context.Context, a *admin.Client, args []string) error {
		return run(ctx, s, a, args)
	})
	cmd.Long = long + "\n\n" + kit.AdminNeeds
	s.DefineJSON(cmd)
	return cmd, pages
}

// did says to how many jobs or others a command has done something.
func (s *session) did(what string, n int) error {
	if s.JSON {
		return s.PrintJSON(map[string]int{what: n})
	}
	_, err := fmt.Fprintln(s.Out, what, n)
	return err
}

// sweep does something with the jobs of tubes, there of them, and then says with how many. do
// reports how many it has done it with since it has reported before.
func (s *session) sweep(tubes []string, there uint64, what string, do func(tube string, report func(n int)) error) error {
	b := kit.NewBar(s.Err, "jobs")
	defer b.End()
	total := 0
	for _, tube := range tubes {
		err := do(tube, func(n int) {
			total += n
			b.Show(uint64(total), there, total)
		})
		if err != nil {
			b.End()
			return fmt.Errorf("after %s: %w", countJobs(uint64(total), ""), err)
		}
	}
	b.End()
	return s.did(what, total)
}

// noteTerminal tells a person why nothing happens while standard input is read.
func (s *session) noteTerminal() {
	if term.IsTerminal(os.Stdin.Fd()) {
		s.Note("reading from the terminal until control-D")
	}
}

func isNotFound(err error) bool {
	return kit.ExitCode(err) == kit.ExitNothing || errors.Is(err, client.ErrNotFound)
}
