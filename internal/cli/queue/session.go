package queue

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// A session is what a command works with.
type session struct {
	server kit.Connection
	json   bool

	in      io.Reader
	out     *bufio.Writer // flushed when the command ends
	printed bool          // a job was, so the next comes below a blank line
	err     io.Writer
}

// dial connects to the server.
func (s *session) dial(ctx context.Context) (*client.Conn, error) {
	opt, err := s.server.Options()
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, s.server.Addr, opt)
	return c, nobodyThere(s.server.Addr, "--addr or BEANPOLE_ADDR", err)
}

// dialTube connects to the server and looks whether it has a tube: many commands would
// make one that is not there.
func (s *session) dialTube(ctx context.Context, tube string) (*client.Conn, *client.TubeStats, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := c.StatsTube(ctx, tube)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, st, nil
}

// A runner is what a command does.
type runner func(ctx context.Context, s *session, args []string) error

// newCommand returns a command that needs a server, and can print JSON. args are what it
// takes besides options, by name: "ID..." is one or more, "[ID]" may be missing.
func newCommand(name, args, short string, run runner) *cobra.Command {
	s := &session{}
	cmd := s.command(name, args, short, run)
	cmd.Flags().BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

// command is newCommand for one that cannot print JSON.
func (s *session) command(name, args, short string, run runner) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   strings.TrimSpace(name + " [options] " + args),
		Short:                 short,
		DisableFlagsInUseLine: true,
		Args:                  argumentsFor(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once
			s.in, s.out, s.err = kit.NewInput(ctx, cmd.InOrStdin()), bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
			return s.exit(ctx, cmp.Or(run(ctx, s, args), s.out.Flush()))
		},
	}
	s.server.Define(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// argumentsFor returns the check of a command's arguments.
func argumentsFor(names string) cobra.PositionalArgs {
	least, most := 0, 0
	for name := range strings.FieldsSeq(names) {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		most++
		if strings.HasSuffix(strings.Trim(name, "[]"), "...") {
			most = 1 << 30
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return kit.UsageError("%s needs %s (see: %s --help)", cmd.Name(), names, cmd.CommandPath())
		case len(args) > most:
			return kit.UsageError("unknown argument %q (see: %s --help)", args[most], cmd.CommandPath())
		}
		return nil
	}
}

// printJSON prints a value as JSON, on one line.
func (s *session) printJSON(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// did says to how many jobs or others a command has done something.
func (s *session) did(what string, n int) error {
	if s.json {
		return s.printJSON(map[string]int{what: n})
	}
	_, err := fmt.Fprintln(s.out, what, n)
	return err
}

// note tells a person something that is not the result.
func (s *session) note(format string, args ...any) {
	fmt.Fprintf(s.err, "beanpole: "+format+"\n", args...)
}

// noteTerminal tells a person why nothing happens while standard input is read.
func (s *session) noteTerminal() {
	if term.IsTerminal(os.Stdin.Fd()) {
		s.note("reading from the terminal until control-D")
	}
}
