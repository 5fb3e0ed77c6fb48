package queue

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout limits the time to complete names if --server-timeout is not given.
const completionTimeout = time.Second

// completeTubes completes names of tubes, which it requests from the server.
func (s *session) completeTubes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if !cmd.Flags().Changed("server-timeout") {
		s.Server.Timeout = completionTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Server.Timeout)
	defer cancel()
	if s.Connect(ctx) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Conn.Close()
	names, _ := s.Conn.ListTubes(ctx) // empty if the server does not answer in time
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
}
