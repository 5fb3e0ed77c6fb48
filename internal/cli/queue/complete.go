package queue

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a shell waits for the names of tubes, if the command line does not say how long.
const completionTimeout = time.Second

// completeTubes completes the names of tubes, which it asks the server for.
func (s *session) completeTubes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := s.forShell(cmd)
	defer cancel()
	if s.Connect(ctx) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Conn.Close()
	names, _ := s.Conn.ListTubes(ctx) // none if it does not answer in time
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
}

// forShell lets the server have no more time than a person at a shell has.
func (s *session) forShell(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	if !cmd.Flags().Changed("server-timeout") {
		s.Server.Timeout = completionTimeout
	}
	return context.WithTimeout(context.Background(), s.Server.Timeout)
}
