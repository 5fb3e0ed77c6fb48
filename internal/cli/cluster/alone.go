package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func newLeave() *cobra.Command {
	var force bool
	cmd := newMemberCommand("leave DIR [--force]", "leave the cluster; the last member becomes a single server", `Leave the cluster. The last member becomes a single server again, and DIR keeps the journal
with all jobs; stop its server first. Any other member is removed as "beanpole cluster remove"
does, with the same checks: its server stops, and its directory cannot be used afterwards.`, "  beanpole cluster leave /var/lib/beanpole", "DIR", func(ctx context.Context, _ *cobra.Command, t target) error {
		if len(t.Contacts) > 0 {
			// The server might have stopped before it could answer. In that case, another
			// member gets the request.
			return change(ctx, t, control.Request{Do: control.DoRemove, ID: t.ID, IfThere: true, Force: force})
		}
		holder, err := advice.LockOwner(t.dir)
		switch {
		case err != nil:
			return err
		case holder != "":
			return exit.WithCode(exit.Journal, fmt.Errorf("directory %s is used by %s (stop the server first)", t.dir, holder))
		}
		if t.Unfinished == "" {
			err = leaveAlone(ctx, t.dir, t.Directory)
		}
		if err == nil {
			err = cluster.Release(fsys, t.dir)
		}
		if err == nil {
			err = t.Remove()
		}
		return exit.WithCode(exit.Journal, err)
	})
	defineForce(cmd, &force)
	return cmd
}

// leaveAlone runs the last member until its journal contains all entries of the log.
// Afterwards, no member can run on the directory.
func leaveAlone(ctx context.Context, dir string, d *directory.Directory) error {
	m, err := cluster.Open(cluster.Options{FS: fsys, Dir: dir, Self: raftlog.MemberInfo{ID: d.ID, Address: d.Listen}, Transport: transport.NoPeers{}})
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
			return errors.Join(errors.New("the cluster has other members"), m.Close())
		}
	}
	if others := len(m.Membership().Members) - 1; others > 0 {
		return errors.Join(fmt.Errorf("there are %d other members", others), m.Close())
	}
	if err := m.Close(); err != nil {
		return err
	}
	return d.Leave()
}

func newRejoin() *cobra.Command {
	return newMemberCommand("rejoin DIR", "replace a member's data with the other members' jobs", `Replace a member by a new one in the same directory, because its disk is damaged or was restored
from an older copy. The server must not run, and a majority of the members must. ALL JOBS IN DIR
ARE REMOVED: the new member gets them from the others.`, "  beanpole cluster rejoin /var/lib/beanpole", "DIR", func(ctx context.Context, cmd *cobra.Command, t target) error {
		if err := rejoin(ctx, t.dir, t.Directory); err != nil {
			return err
		}
		return printID(cmd, t.ID)
	})
}

func rejoin(ctx context.Context, dir string, d *directory.Directory) (err error) {
	if len(d.Contacts) == 0 {
		return errors.New("no other member is recorded in this directory, so there is no source for the jobs")
	}
	if _, err := cluster.Inspect(fsys, dir); errors.Is(err, cluster.ErrCopy) { // a member with the same id would replace the original
		return exit.WithCode(exit.Journal, fmt.Errorf("%w: %s", err, advice.Member(dir, err)))
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return exit.WithCode(exit.Journal, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if d.Unfinished == "" {
		if err := replaceSelf(ctx, d); err != nil {
			return err
		}
	}
	return exit.WithCode(exit.Journal, errors.Join(cluster.RemoveJournal(fsys, dir), settle(dir, d)))
}

// replaceSelf adds a new member in place of the member in a directory. From then on, the
// directory belongs to the new member.
func replaceSelf(ctx context.Context, d *directory.Directory) error {
	credentials := d.Credentials.Issue(directory.NewID())
	// Replace the member in one step: if the old member were removed before the new one
	// has caught up, the cluster would survive fewer failures.
	add := control.Request{Do: control.DoAdd, ID: credentials.ID, Address: d.Listen, InPlaceOf: d.ID}
	with, err := control.Ask[raftlog.Membership](ctx, d, add)
	if errors.Is(err, cluster.ErrNotMember) { // the member was already removed
		add.InPlaceOf = 0
		with, err = control.Ask[raftlog.Membership](ctx, d, add)
	}
	if err != nil {
		return err
	}
	m, err := joins(d.Listen, credentials.ID, with)
	if err != nil {
		return err
	}
	m.Unfinished = directory.Rejoin
	return exit.WithCode(exit.Journal, d.Become(m, credentials))
}

func newRecover() *cobra.Command {
	var sure bool
	cmd := cliutil.NewCommand("recover --force-new-cluster DIR", "restart a cluster from one member after the loss of a majority", `Make the member in DIR the only member of a new cluster, with the jobs in its directory. Use this
only if a majority of the members is lost for good: acknowledged changes that only the lost
members had are gone. If several members are left, choose the one whose log ends last. The others
must not run again: move their directories away and let the machines join. An interrupted recover
can be repeated.`, "  beanpole cluster recover --force-new-cluster /var/lib/beanpole", "DIR", func(cmd *cobra.Command, args []string) error {
		if !sure {
			return exit.UsageError("a majority of the members must be lost for good; if so, add --force-new-cluster")
		}
		d, err := open(args[0], directory.Recover)
		if err != nil {
			return err
		}
		last, err := recoverAlone(args[0], d)
		if err != nil {
			return exit.WithCode(exit.Journal, err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "member %d, with the log up to entry %d of term %d\n", d.ID, last.Index, last.Term)
		return err
	})
	cmd.Flags().BoolVar(&sure, "force-new-cluster", false, "confirm that a majority of the members is lost for good")
	return cmd
}

// recoverAlone makes a member the only member of a new cluster.
func recoverAlone(dir string, d *directory.Directory) (last raftlog.Position, err error) {
	lock, err := advice.Lock(dir)
	if err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	switch found, err := cluster.Inspect(fsys, dir); { // change nothing if the log cannot be read
	case len(found.Members) == 0:
		return last, fmt.Errorf("%w (%s)", err, advice.Member(dir, err))
	case len(found.Members) > 1 && found.Last.Index == 0:
		return last, fmt.Errorf("%s: this member has received no jobs since it joined; recover another member", dir)
	}
	credentials := directory.NewCA(directory.NewCluster(), directory.NewID())
	if err := d.Become(directory.Identity{Listen: d.Listen, Unfinished: directory.Recover}, credentials); err != nil {
		return last, err
	}
	if last, err = cluster.Recover(fsys, dir, raftlog.MemberInfo{ID: d.ID, Address: d.Listen}); err != nil {
		return last, err
	}
	return last, d.Finish()
}
