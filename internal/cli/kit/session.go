package kit

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

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Session is what a command works with that asks a server.
type Session struct {
	Server Connection
	JSON   bool // is to be printed

	In  io.Reader
	Out *bufio.Writer // flushed when the command ends
	Err io.Writer
}

// Command returns a command that asks the server. args are what it takes besides options, as
// Arguments has them. run ends with an error when a signal has come, and what it returns is
// explained.
func (s *Session) Command(name, args, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   strings.TrimSpace(name + " [options] " + args),
		Short:                 short,
		DisableFlagsInUseLine: true,
		Args:                  Arguments(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once
			s.In, s.Out, s.Err = NewInput(ctx, cmd.InOrStdin()), bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
			return s.Server.Explain(ctx, cmp.Or(run(ctx, args), s.Out.Flush()))
		},
	}
	s.Server.Define(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// AdminCommand is Command for one that asks the admin pages, and pages where they are.
func (s *Session) AdminCommand(name, args, short string, run func(ctx context.Context, a *admin.Client, args []string) error) (cmd *cobra.Command, pages *AdminPages) {
	pages = new(AdminPages)
	cmd = s.Command(name, args, short, func(ctx context.Context, args []string) error {
		a, err := pages.Client(&s.Server)
		if err != nil {
			return err
		}
		return run(ctx, a, args)
	})
	pages.Need(cmd.Flags(), "")
	return cmd, pages
}

// DefineJSON adds the option to print JSON.
func (s *Session) DefineJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.JSON, "json", false, "print JSON")
}

// PrintJSON prints a value as JSON, on one line.
func (s *Session) PrintJSON(v any) error {
	e := json.NewEncoder(s.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Note tells a person something that is not the result.
func (s *Session) Note(format string, args ...any) {
	fmt.Fprintf(s.Err, "beanpole: "+format+"\n", args...)
}
