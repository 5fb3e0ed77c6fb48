package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func newStatus() *cobra.Command {
	var asJSON, isOffline bool
	var s cliutil.Session
	cmd := cliutil.NewCommand("status [DIR|-a ADDR] [--offline] [--json]", "show the members of a cluster and their roles", `Show the members of a cluster with their roles, the time since their last message, and the
number of log entries that they lack ("-" if unknown). Then show each problem, with advice, and
the number of members that the cluster can lose now. Full disks and members that are catching
up count as lost.

With the directory of a member, the command asks that member's leader, or the member itself if
it has no leader. Without a directory, it uses the admin API of the member at --addr. The exit
code is 1 if something is wrong, and 3 if the member is unreachable. Less than 512 MiB of free
disk space, different settings and different versions are only warnings.

With --offline, the command reads the directory and contacts no member; the server need not
run. It shows the members that this one last recorded. For "beanpole cluster recover", choose
the directory whose log ends with the highest term and, among these, with the highest entry.`, "  beanpole cluster status /var/lib/beanpole\n  beanpole cluster status /var/lib/beanpole --json\n  beanpole cluster status\n  beanpole cluster status -a 10.0.0.2:11300\n  beanpole cluster status --offline /var/lib/beanpole", "[DIR]", func(cmd *cobra.Command, args []string) error {
		if isOffline {
			return showOffline(cmd, args, asJSON)
		}
		ctx, cancel := withPatience(cmd)
		defer cancel()
		c, err := ask(ctx, cmd, args, &s)
		if err != nil {
			return inTime(ctx, err)
		}
		if err := printStatus(cmd.OutOrStdout(), c, asJSON); err != nil {
			return err
		}
		switch problems := c.Problems(); {
		case !c.Quorum:
			return errors.New("no majority: changes are refused")
		case slices.ContainsFunc(problems, func(p admin.ClusterProblem) bool { return p.Bad }):
			return errors.New("the cluster needs attention")
		}
		return nil
	})
	s.Server.Define(cmd.Flags())
	s.DefineAdmin(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	cmd.Flags().BoolVar(&isOffline, "offline", false, "read the directory, without a server")
	return cmd
}

// showOffline prints the contents of a directory.
func showOffline(cmd *cobra.Command, args []string, asJSON bool) error {
	if len(args) == 0 || cmd.Flags().Changed("addr") {
		return exit.UsageError("--offline requires a directory, not -a ADDR (see: %s --help)", cmd.CommandPath())
	}
	o, err := inspect(args[0])
	if err != nil {
		return err
	}
	return cmp.Or(o.print(cmd.OutOrStdout(), asJSON), o.verdict(args[0]))
}

// ask gets the status from the member of a directory or, without a directory, from the
// admin API.
func ask(ctx context.Context, cmd *cobra.Command, args []string, s *cliutil.Session) (c admin.Cluster, err error) {
	switch {
	case len(args) > 0 && (cmd.Flags().Changed("addr") || cmd.Flags().Changed("admin")):
		return c, exit.UsageError("want one directory, or -a ADDR (see: %s --help)", cmd.CommandPath())
	case len(args) > 0:
		d, err := open(args[0])
		if err != nil {
			return c, err
		}
		return control.Ask[admin.Cluster](ctx, d, control.Request{Do: control.DoStatus})
	}
	a, err := s.AdminClient()
	if err != nil {
		return c, err
	}
	return a.GetCluster(ctx)
}

func printStatus(w io.Writer, s admin.Cluster, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(s)
	}
	err := cliutil.PrintRows(w, "ID HOST ADDRESS ROLE REACHABLE HEARD APPLIED LAG VERSION", s.Members, func(m *admin.ClusterMember) []any {
		reachable, heard, applied, lag := "no", "-", "-", "-"
		if m.Heard != nil {
			heard = (time.Duration(*m.Heard) * time.Second).String() + " ago"
		}
		if m.Reachable {
			reachable, heard = "yes", "now"
		}
		if m.Progress != nil {
			applied, lag = strconv.FormatUint(m.Applied, 10), strconv.FormatUint(m.Lag, 10)
		}
		return []any{fmt.Sprint(m.ID), cmp.Or(m.Host, "-"), m.Address, string(m.Role), reachable, heard, applied, lag, cmp.Or(m.Version, "-")}
	})
	if err != nil {
		return err
	}
	problems := s.Problems()
	if len(problems) == 0 {
		fmt.Fprintln(w, cliutil.Line(s.Summary()))
	}
	for _, p := range problems {
		fmt.Fprintln(w, cliutil.Line(p.Text))
	}
	return nil
}

// change sends a request that has no result.
func change(ctx context.Context, t target, r control.Request) error {
	_, err := control.Ask[struct{}](ctx, t.Directory, r)
	return inTime(ctx, err)
}

func newRemove() *cobra.Command {
	var force bool
	cmd := newMemberCommand("remove DIR ID [--force]", "remove a member", `Remove member ID from the cluster of the member in DIR. Member ID need not run. Its directory
cannot be used afterwards, and its id is never reused.

The command refuses if the remaining voters would have no reachable majority, because the cluster
would stop.`, "  beanpole cluster remove /var/lib/beanpole 5577006791947779", "DIR ID", func(ctx context.Context, _ *cobra.Command, t target) error {
		return change(ctx, t, control.Request{Do: control.DoRemove, ID: t.id, Force: force})
	})
	defineForce(cmd, &force)
	return cmd
}

func defineForce(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "remove the member even if the cluster loses its majority")
}

func newTransfer() *cobra.Command {
	return newMemberCommand("transfer DIR [ID]", "transfer the leadership to another member", `Transfer the leadership to member ID, or to the member with the most complete log.
Clients normally keep their connections and jobs; doc/cluster.md lists the exceptions. A
leader that is stopped transfers the leadership automatically.`, "  beanpole cluster transfer /var/lib/beanpole", "DIR [ID]", func(ctx context.Context, _ *cobra.Command, t target) error {
		return change(ctx, t, control.Request{Do: control.DoTransfer, ID: t.id})
	})
}
