package cliutil

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

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Session contains the options, connections and outputs of a command that uses a
// server.
type Session struct {
	Server Connection
	Admin  string       // the address of the admin API given by --admin, or empty
	Conn   *client.Conn // set by Connect
	JSON   bool         // whether to print JSON
	yes    bool         // whether to skip confirmations

	In  io.Reader
	Out *bufio.Writer // flushed when the command ends
	Err io.Writer
}

// Command returns a command that uses a server. See Arguments for the syntax of args. A
// signal cancels the context of run. The command adds explanations to the error that run
// returns.
func (s *Session) Command(name, args, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := NewCommand(strings.TrimSpace(name+" [options] "+args), short, "", "", args, func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
		s.In, s.Out, s.Err = NewInput(ctx, cmd.InOrStdin()), bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
		err := s.Server.Explain(ctx, cmp.Or(run(ctx, args), s.Out.Flush()))
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

// AdminCommand returns a command that uses the admin API.
func (s *Session) AdminCommand(name, args, short string, run func(ctx context.Context, a *admin.Client, args []string) error) *cobra.Command {
	cmd := s.Command(name, args, short, func(ctx context.Context, args []string) error {
		a, err := s.AdminClient()
		if err != nil {
			return err
		}
		return run(ctx, a, args)
	})
	s.DefineAdmin(cmd)
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

// Note prints a message that is not part of the result. Line applies to its arguments.
func Note(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, "beanpole: "+format+"\n", lines(args)...)
	return err
}

// Note prints a message that is not part of the result.
func (s *Session) Note(format string, args ...any) {
	Note(s.Err, format, args...)
}
