// Package cluster implements "beanpole cluster": commands that create, list, add and
// remove the members of a cluster.
package cluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const long = `Create a cluster: three or five servers with one queue, which survives the
loss of a machine. Each member stores its data in DIR, created by "init" or "join"
and served with "beanpole -b DIR". Add --cluster to refuse to start if DIR is
missing, for example because a disk is not mounted. Clients connect to any member.
doc/cluster.md explains how to run a cluster.`

const example = `  beanpole cluster init /var/lib/beanpole --listen 10.0.0.1:11400
  beanpole cluster join-token /var/lib/beanpole > token
  beanpole cluster join /var/lib/beanpole 10.0.0.1:11400 --join-token-file token --listen 10.0.0.2:11400
  beanpole cluster status /var/lib/beanpole`

// New returns the command cluster.
func New() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:     "cluster COMMAND",
		Short:   "create a cluster and manage its members",
		Long:    long,
		Example: example,
	}, newInit(), newJoinToken(), newJoin(), newStatus(), newRemove(), newTransfer(), newVerify(), newLeave(), newRejoin(), newRecover())
}

// A target is the member that a command changes.
type target struct {
	*directory.Directory        // directory of a member
	dir                  string // path of that directory
	id                   uint64 // id of another member; 0 if none was given
}

// newMemberCommand returns a command whose first argument is the directory of a member,
// and whose second argument is the id of the member to change. It gives up after
// patience.
func newMemberCommand(use, short, long, example, args string, run func(context.Context, *cobra.Command, target) error) *cobra.Command {
	return cliutil.NewCommand(use, short, long, example, args, func(cmd *cobra.Command, args []string) (err error) {
		t := target{dir: args[0]}
		if len(args) > 1 {
			t.id, err = parseID(args[1])
		}
		if err == nil {
			t.Directory, err = open(t.dir, cmd.Name())
		}
		if err != nil {
			return err
		}
		ctx, cancel := withPatience(cmd)
		defer cancel()
		return run(ctx, cmd, t)
	})
}

// fsys is the file system of all commands. Tests set it.
var fsys = vfs.OS

// open opens the directory of a member. It accepts a directory in which one of the given
// commands was interrupted.
func open(dir string, command ...string) (*directory.Directory, error) {
	d, err := directory.Open(fsys, dir, command...)
	return d, exit.WithCode(exit.Journal, err)
}

// parseID parses the id of a member.
func parseID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return 0, exit.UsageError("%q is not the id of a member (see: beanpole cluster status DIR)", text)
	}
	return id, nil
}

// printID prints the id of a new member.
func printID(cmd *cobra.Command, id uint64) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "member %d\n", id)
	return err
}

// patience is the time that a command waits for the cluster.
const patience = 30 * time.Second

func withPatience(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(cmd.Context(), patience, fmt.Errorf("the cluster has not answered within %v", patience))
}

// inTime returns err or, if the end of the context is the reason for err, its cause.
func inTime(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
