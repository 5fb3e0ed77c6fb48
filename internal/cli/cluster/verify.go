package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster/consistency"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
)

func newVerify() *cobra.Command {
	var asJSON bool
	cmd := cliutil.NewCommand("verify DIR [--json]", "compare the jobs of all members", `Compare the queues in the members' memory: all jobs with their bodies, states and tubes, pauses,
and run-time policies. DIR is the directory of a member. Clients are served during the
comparison. Jobs that change during the comparison are not compared; the command shows their
number. The exit code is 1 if a member differs or was unreachable.`, "  beanpole cluster verify /var/lib/beanpole", "DIR", func(cmd *cobra.Command, args []string) error {
		d, err := open(args[0])
		if err != nil {
			return err
		}
		c, err := compare(cmd.Context(), d)
		if err != nil {
			return err
		}
		if err := printResult(cmd.OutOrStdout(), &c, asJSON); err != nil {
			return err
		}
		return resultError(&c)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	return cmd
}

// compare compares the members of a cluster.
func compare(ctx context.Context, d *directory.Directory) (c consistency.Result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, consistency.TimeLimit, fmt.Errorf("the consistency check took longer than %v", consistency.TimeLimit))
	defer cancel()
	s, err := control.Ask[admin.Cluster](ctx, d, control.Request{Do: control.DoStatus})
	if err != nil {
		return c, inTime(ctx, err)
	}
	return consistency.Verify(ctx, s.Members, func(ctx context.Context, member uint64, r consistency.Request) (consistency.Reply, error) {
		return control.Ask[consistency.Reply](ctx, d, control.Request{Do: control.DoCheck, ID: member, Check: &r})
	}), nil
}

func printResult(w io.Writer, c *consistency.Result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(c)
	}
	return cliutil.PrintRows(w, "ID ADDRESS ROLE JOBS CHANGED DIGEST RESULT", c.Members, func(m *consistency.ComparedMember) []any {
		row := []any{fmt.Sprint(m.ID), m.Address, string(m.Role), fmt.Sprint(m.Jobs), fmt.Sprint(m.Changed), fmt.Sprint(m.Digest), "same"}
		switch {
		case m.Problem != "":
			row = append(row[:3], "-", "-", "-", "not compared: "+strings.TrimPrefix(m.Problem, "cluster: "))
		case m.Differs:
			row[6] = "DIFFERS"
		}
		return row
	})
}

// resultError returns an error if a member differs or was not compared.
func resultError(c *consistency.Result) error {
	for _, m := range c.Members {
		if m.Differs {
			return fmt.Errorf("the jobs of member %d differ from those of the other members; stop it, keep a copy of its directory for a bug report, "+
				"then run 'beanpole cluster rejoin'", m.ID)
		}
	}
	if !c.Same {
		return errors.New("some members were not compared")
	}
	return nil
}
