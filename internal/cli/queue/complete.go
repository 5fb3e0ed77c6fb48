package queue

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// completionTimeout is how long a shell waits for the names of tubes, if the command line does not say how long.
const completionTimeout = time.Second

// completeTubes completes the names of tubes, which it asks the server for.
func completeTubes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := tubeNames(cmd)
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
}

// completeStats completes "stats tube NAME".
func completeStats(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []string{"job", "tube"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == "tube":
		return tubeNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// connectionOf returns the server that the options of a command name, for a shell that waits.
func connectionOf(cmd *cobra.Command) (server kit.Connection) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	server.Define(flags)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil {
			flags.Set(f.Name, f.Value.String()) // a value that it has taken before
		}
	})
	if !flags.Changed("server-timeout") {
		server.Timeout = completionTimeout
	}
	return server
}

// tubeNames returns the names of the server's tubes, or none if it does not answer
// in time.
func tubeNames(cmd *cobra.Command) []string {
	server := connectionOf(cmd)
	ctx, cancel := context.WithTimeout(context.Background(), server.Timeout)
	defer cancel()
	opt, err := server.Options()
	if err != nil {
		return nil
	}
	c, err := client.Dial(ctx, server.Addr, opt)
	if err != nil {
		return nil
	}
	defer c.Close()
	names, err := c.ListTubes(ctx)
	if err != nil {
		return nil
	}
	return names
}
