package cliutil

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Session is what a command works with that asks a server.
type Session struct {
	Server Connection
	Admin  string       // where its admin pages are; empty: nobody has said that
	Conn   *client.Conn // from Connect until the command ends
	JSON   bool         // is to be printed

	In  io.Reader
	Out *bufio.Writer // flushed when the command ends
	Err io.Writer
}

// Command returns a command that asks the server. args are what it takes besides options, as
// Arguments has them. run ends with an error when a signal has come, and what it returns is
// explained.
func (s *Session) Command(name, args, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := NewCommand(strings.TrimSpace(name+" [options] "+args), short, "", "", args, func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
		s.In, s.Out, s.Err = NewInput(ctx, cmd.InOrStdin()), bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
		err := s.explain(ctx, cmp.Or(run(ctx, args), s.Out.Flush()))
		if s.Conn != nil {
			s.Conn.Close()
		}
		return err
	})
	s.Server.Define(cmd.Flags())
	return cmd
}

// Connect connects to the server.
func (s *Session) Connect(ctx context.Context) (err error) {
	s.Conn, err = s.Server.Dial(ctx)
	return err
}

// explain explains an error, and after OUT_OF_MEMORY what has no room, as far as stats tells.
func (s *Session) explain(ctx context.Context, err error) error {
	explained := s.Server.Explain(ctx, err)
	if !errors.Is(err, client.ErrOutOfMemory) || ctx.Err() != nil || s.Conn == nil {
		return explained
	}
	st, unknown := s.Conn.Stats(ctx)
	if unknown != nil {
		return explained
	}
	limits := RefusedBy(st, new(client.ServerStats))
	switch {
	case st.JournalHealth != "ok" && st.JournalHealth != "":
		return WithCode(ExitCode(explained), fmt.Errorf("%w; its journal: %s", explained, st.JournalHealth))
	case len(limits) > 0:
		return WithCode(ExitCode(explained), fmt.Errorf("%w; what has refused something since its start: %s", explained, strings.Join(limits, ", ")))
	}
	return explained
}

// AdminCommand is Command for one that asks the admin pages.
func (s *Session) AdminCommand(name, args, short string, run func(ctx context.Context, a *admin.Client, args []string) error) *cobra.Command {
	cmd := s.Command(name, args, short, func(ctx context.Context, args []string) error {
		a, err := s.AdminClient()
		if err != nil {
			return err
		}
		return run(ctx, a, args)
	})
	s.NeedAdmin(cmd, "")
	return cmd
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

// Print prints a result, as JSON or as text. Line applies to the arguments of the text.
func (s *Session) Print(v any, format string, args ...any) error {
	if s.JSON {
		return s.PrintJSON(v)
	}
	_, err := fmt.Fprintf(s.Out, format+"\n", lines(args)...)
	return err
}

// Note prints a message that is not the result to a terminal. Line applies to its arguments.
func Note(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, "beanpole: "+format+"\n", lines(args)...)
	return err
}

// Note prints a message that is not the result.
func (s *Session) Note(format string, args ...any) {
	Note(s.Err, format, args...)
}
