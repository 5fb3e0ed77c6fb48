package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func newLeave() *cobra.Command {
	var force bool
	cmd := newMemberCommand("leave DIR [--force]", "leave the cluster; the last member becomes a single server", `Leave the cluster. The last member becomes a single server again: stop its server first; DIR
keeps the journal with all jobs. Any other member is removed as by "beanpole cluster remove",
with the same checks. Its server stops, and its directory is useless afterwards.
`, "  beanpole cluster leave /var/lib/beanpole", "DIR", func(ctx context.Context, _ *cobra.Command, t target) error {
		if len(t.Contacts) > 0 {
			// Its server may have ended before it could answer; then another one was asked.
			return change(ctx, t, control.Request{Do: control.DoRemove, ID: t.ID, IfThere: true, Force: force})
		}
		holder, err := kit.HolderOf(t.dir)
		switch {
		case err != nil:
			return err
		case holder != "":
			return kit.WithCode(kit.ExitJournal, fmt.Errorf("directory %s is used by %s (stop the server first)", t.dir, holder))
		}
		return kit.WithCode(kit.ExitJournal, becomeSingle(ctx, t.dir, t.Directory))
	})
	defineForce(cmd, &force)
	return cmd
}

// becomeSingle makes the directory of the last member that of a single server. The member runs until the journal has
// everything that is in the log.
func becomeSingle(ctx context.Context, dir string, d *directory.Directory) error {
	m, err := cluster.Open(cluster.Options{Dir: dir, Self: raftlog.Member{ID: d.ID, Address: d.Listen}, Transport: transport.Nobody{}})
	if err != nil {
		return err
	}
	for {
		changed := m.Watch()
		if m.Lead().Epoch != 0 {
			break
		}
		select {
		case <-changed:
		case <-m.Failed():
			return errors.Join(errors.New("the member has stopped"), m.Close())
		case <-ctx.Done():
			return errors.Join(errors.New("the member cannot decide alone: there are others"), m.Close())
		}
	}
	if others := len(m.Membership().Members) - 1; others > 0 {
		return errors.Join(fmt.Errorf("there are %d other members", others), m.Close())
	}
	if err := errors.Join(m.Close(), cluster.Release(vfs.OS, dir)); err != nil {
		return err
	}
	return d.Remove()
}

func newRejoin() *cobra.Command {
	return newMemberCommand("rejoin DIR", "throw a member's jobs away and get them from the others", `Make the directory of a member that cannot go on, because its disk is damaged or was restored from
an older copy, that of a new member in its place. The server must not run, and a majority
of the members must. ALL JOBS IN DIR ARE REMOVED: the new member gets them from the others.
`, "  beanpole cluster rejoin /var/lib/beanpole", "DIR", func(ctx context.Context, cmd *cobra.Command, t target) error {
		id, err := rejoin(ctx, t.dir, t.Directory)
		if err != nil {
			return err
		}
		return printID(cmd, id)
	})
}

func rejoin(ctx context.Context, dir string, d *directory.Directory) (id uint64, err error) {
	if len(d.Contacts) == 0 {
		return 0, errors.New("this member knows no others: there is nobody to get the jobs from")
	}
	if _, err := cluster.Inspect(vfs.OS, dir); errors.Is(err, cluster.ErrCopy) { // it would take the place of the original
		return 0, kit.WithCode(kit.ExitJournal, fmt.Errorf("%w: %s", err, advice.Member(dir, err)))
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return 0, kit.WithCode(kit.ExitJournal, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	credentials := d.Credentials.Issue(directory.NewID())
	joined := control.Joined{Cluster: d.Cluster, ID: credentials.ID, Bundle: credentials.Bundle()}
	// In one step: removed before, the old member would be missed while the new one catches up.
	add := control.Request{Do: control.DoAdd, ID: joined.ID, Address: d.Listen, InPlaceOf: d.ID}
	joined.Membership, err = control.Ask[raftlog.Membership](ctx, d, add)
	if errors.Is(err, cluster.ErrNotMember) { // it was removed already
		add.InPlaceOf = 0
		joined.Membership, err = control.Ask[raftlog.Membership](ctx, d, add)
	}
	if err != nil {
		return 0, err
	}
	if err := wipe(dir, d); err != nil {
		return 0, kit.WithCode(kit.ExitJournal, err)
	}
	return joined.ID, settle(dir, d.Listen, joined)
}

// wipe removes the journal of a member, and then what makes the directory one: never is it that of a single server
// meanwhile.
func wipe(dir string, d *directory.Directory) error {
	files, err := filepath.Glob(filepath.Join(dir, "beanpole.*.wal*")) // those of a snapshot, too
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := vfs.OS.SyncDir(dir); err != nil {
		return err
	}
	return d.Remove()
}

func newRecover() *cobra.Command {
	var sure bool
	cmd := newCommand("recover --force-new-cluster DIR", "go on alone when a majority is lost for good", `Make the member whose directory this is the only one of a new cluster, with what it has. Only
when a majority of the members is lost for good: what the lost ones had and this one has not is
gone, although it was acknowledged. If there are several to choose from, take the one whose log goes
furthest. The other members that are left must not run again: wipe them and let them join.
`, "  beanpole cluster recover --force-new-cluster /var/lib/beanpole", "DIR", func(cmd *cobra.Command, args []string) error {
		if !sure {
			return kit.UsageError("a majority of the members must be lost for good; if so, add --force-new-cluster")
		}
		d, err := open(args[0])
		if err != nil {
			return err
		}
		id, last, err := recoverAlone(args[0], d)
		if err != nil {
			return kit.WithCode(kit.ExitJournal, err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "member %d, with the log up to entry %d of term %d\n", id, last.Index, last.Term)
		return err
	})
	cmd.Flags().BoolVar(&sure, "force-new-cluster", false, "a majority of the members is lost for good")
	return cmd
}

// recoverAlone makes a member the only one of a new cluster.
func recoverAlone(dir string, d *directory.Directory) (id uint64, last raftlog.Position, err error) {
	lock, err := advice.Lock(dir)
	if err != nil {
		return 0, last, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	credentials := directory.NewCA(directory.NewCluster(), directory.NewID())
	last, err = cluster.Recover(vfs.OS, dir, raftlog.Member{ID: credentials.ID, Address: d.Listen})
	if err != nil {
		return 0, last, err
	}
	return credentials.ID, last, d.Refound(credentials)
}
