package queue

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const statsLong = `Print the statistics of the server, of a job or of a tube, with the keys of the protocol.`

func newStats() *cobra.Command {
	s := new(session)
	cmd := s.command("stats", "[job|tube] [ID|NAME]", "print statistics of the server, a job or a tube", func(ctx context.Context, args []string) error {
		var ids []uint64
		if len(args) == 1 || len(args) == 2 && args[0] != "job" && args[0] != "tube" {
			return exit.UsageError("want 'stats', 'stats job ID' or 'stats tube NAME'")
		} else if len(args) == 2 && args[0] == "job" {
			var err error
			if ids, err = parseIDs(args[1:], "job"); err != nil {
				return err
			}
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		switch {
		case len(args) == 0:
			st, err := s.Conn.Stats(ctx)
			if err != nil {
				return err
			}
			return s.printStats(st.All)
		case ids != nil:
			st, err := s.Conn.StatsJob(ctx, ids[0])
			if err != nil {
				return err
			}
			return s.printStats(st.All)
		}
		st, err := s.Conn.StatsTube(ctx, args[1])
		if err != nil {
			return err
		}
		return s.printStats(st.All)
	})
	cmd.Long = statsLong
	cmd.Example = "  beanpole stats\n  beanpole stats tube mail\n  beanpole stats job 17"
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return []string{"job", "tube"}, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && args[0] == "tube":
			return s.completeTubes(cmd, nil, text)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// texts contains the keys whose values are strings, even if they look like numbers.
var texts = []string{"name", "tube", "version", "server-version", "hostname", "os", "platform", "server"}

// numbered returns the values for JSON, with numbers as JSON numbers.
func numbered(all map[string]string) map[string]any {
	values := make(map[string]any, len(all))
	for k, v := range all {
		values[k] = v
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && strconv.FormatInt(n, 10) == v && !slices.Contains(texts, k) {
			values[k] = n
		}
	}
	return values
}

// printStats prints keys and values, sorted by key.
func (s *session) printStats(all map[string]string) error {
	if s.JSON {
		return s.PrintJSON(numbered(all))
	}
	keys := slices.Sorted(maps.Keys(all))
	return cliutil.PrintRows(s.Out, "KEY VALUE", keys, func(key *string) []any { return []any{*key, all[*key]} })
}
