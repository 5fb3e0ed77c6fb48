package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

// completionTimeout is how long a shell waits for the names of tubes.
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

// tubeNames returns the names of the server's tubes, or none if it does not answer
// at once.
func tubeNames(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	addr, err := cmd.Flags().GetString("addr")
	if err != nil {
		return nil
	}
	token, _ := cmd.Flags().GetString("token")
	server := serverOptions{addr: addr, token: token, timeout: completionTimeout}
	opt, err := server.options()
	if err != nil {
		return nil
	}
	c, err := client.Dial(ctx, addr, opt)
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
