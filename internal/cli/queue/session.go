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
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// A session is what a command works with.
type session struct {
	cliutil.Session
	tubes   []string // that --tube has named
	printed bool     // a job was, so the next comes below a blank line
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

// command returns a command that needs a server, and can print JSON. args are what it
// takes besides options, by name: "ID..." is one or more, "[ID]" may be missing.
func (s *session) command(name, args, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := s.Command(name, args, short, run)
	s.DefineJSON(cmd)
	return cmd
}

// adminCommand is command for one that asks the admin pages of a beanpole. long is its help, to
// which is added that it needs them.
func (s *session) adminCommand(name, args, short, long string, run func(ctx context.Context, a *admin.Client, args []string) error) *cobra.Command {
	cmd := s.AdminCommand(name, args, short, run)
	cmd.Long = long + "\n\n" + cliutil.AdminNeeds
	s.DefineJSON(cmd)
	return cmd
}

// printCount says to how many jobs or others a command has done something.
func (s *session) printCount(what string, n int) error {
	return s.Print(map[string]int{what: n}, "%s %d", what, n)
}

// sweep does something with the jobs of tubes, there of them, and then says with how many. do
// reports how many it has done it with since it has reported before.
func (s *session) sweep(tubes []string, there uint64, what string, do func(tube string, report func(n int)) error) error {
	b := cliutil.NewBar(s.Err, "jobs")
	defer b.End()
	total := 0
	for _, tube := range tubes {
		err := do(tube, func(n int) {
			total += n
			b.Show(uint64(total), there, total)
		})
		if err != nil {
			b.End()
			return fmt.Errorf("after %s: %w", cliutil.Count(total, "job"), err)
		}
	}
	b.End()
	return s.printCount(what, total)
}

// noteTerminal tells a person why nothing happens while standard input is read.
func (s *session) noteTerminal() {
	if term.IsTerminal(os.Stdin.Fd()) {
		s.Note("reading from the terminal until control-D")
	}
}

func isNotFound(err error) bool {
	return cliutil.ExitCode(err) == cliutil.ExitNothing || errors.Is(err, client.ErrNotFound)
}
