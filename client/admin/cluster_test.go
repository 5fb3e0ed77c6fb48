package admin

import (
	"strings"
	"testing"
)

// CheckRemove refuses a removal after which the other voters have no reachable majority.
func TestCheckRemove(t *testing.T) {
	of := func(up ...bool) *Cluster {
		c := new(Cluster)
		for i, up := range up {
			c.Members = append(c.Members, ClusterMember{ID: uint64(i + 1), Address: "host:1", Role: Voter, Reachable: up})
		}
		return c
	}
	learns := of(true, true, false)
	learns.Members[1].Role = Learner
	rolledBack := of(true, true, true)
	rolledBack.Members[2].MustRejoin = true
	for _, c := range []struct {
		cluster *Cluster
		id      uint64
		refused bool
	}{
		{of(true), 1, false}, // the last voter causes another error
		{of(true, true), 2, false},
		{of(true, false), 2, false},
		{of(true, false), 1, true},
		{of(true, true, true), 1, false},
		{of(true, true, false), 3, false},
		{of(true, true, false), 2, true},
		{of(true, true, false), 9, false}, // an id without a member causes another error
		{of(true, true, true, false), 1, false},
		{of(true, true, true, false, false), 1, true},
		{of(true, true, true, false, false), 4, false},
		{of(true, true, true, true, false), 1, false},
		{learns, 2, false},
		{rolledBack, 2, true},
	} {
		err := c.cluster.CheckRemove(c.id)
		if (err != nil) != c.refused {
			t.Errorf("remove %d of %v: %v", c.id, c.cluster.Members, err)
		}
	}
	const want = "member 1 was not removed: without it, 2 of the 4 remaining voters can acknowledge changes, which is not a majority, and the cluster would stop; " +
		"repair, replace or remove member 4 at host:1 and member 5 at host:1 first (--force removes member 1 regardless)"
	if err := of(true, true, true, false, false).CheckRemove(1); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Problems describes a healthy cluster, and each kind of problem, in sentences.
func TestProblems(t *testing.T) {
	member := func(id uint64, role Role, change func(*ClusterMember)) ClusterMember {
		m := ClusterMember{ID: id, Address: "host:1", Role: role, Reachable: true, Version: "1"}
		if change != nil {
			change(&m)
		}
		return m
	}
	answers := func(m *ClusterMember) { m.Progress = new(Progress) }
	silent := func(m *ClusterMember) { m.Reachable, m.Heard = false, new(int64(320)) }
	free := func(n int64) func(*ClusterMember) { return func(m *ClusterMember) { m.DiskFree = &n } }
	never := func(m *ClusterMember) { m.Reachable = false }
	for _, c := range []struct {
		cluster Cluster
		want    []string
	}{
		{Cluster{Self: 2, Leader: 1, Since: 3600, Quorum: true, Members: []ClusterMember{member(1, Leader, nil), member(2, Voter, nil), member(3, Voter, nil)}},
			[]string{"member 2, a follower, sees no problem: member 1 has led for 1h0m0s, 3 of 3 members are reachable, the cluster survives the loss of 1 member"}},
		// A leader cannot rely on a member before its first answer.
		{Cluster{Self: 1, Leader: 1, Quorum: true, Members: []ClusterMember{member(1, Leader, answers), member(2, Voter, answers), member(3, Voter, answers)}},
			[]string{"all is well: member 1 has led for 0s"}},
		{Cluster{Self: 1, Leader: 1, Quorum: true, Members: []ClusterMember{member(1, Leader, answers), member(2, Voter, answers), member(3, Voter, nil)}},
			[]string{"bad: member 3 at host:1 has not answered this leader yet", "bad: the cluster survives no further loss"}},
		{Cluster{Since: 90, Members: []ClusterMember{member(1, Voter, nil), member(2, Voter, func(m *ClusterMember) { m.Refuses = "too old" })}},
			[]string{"bad: no leader for 1m30s", "bad: member 2 at host:1 refuses this member: too old"}},
		{Cluster{Leader: 1, Members: []ClusterMember{member(1, Leader, nil), member(2, Voter, silent), member(3, Voter, never)}}, []string{
			"bad: the leader cannot reach a majority",
			"bad: member 2 at host:1 cannot be reached for 5m20s",
			"bad: member 3 at host:1 cannot be reached",
		}},
		{Cluster{Leader: 1, Quorum: true, Members: []ClusterMember{
			member(1, Leader, nil), member(2, Voter, func(m *ClusterMember) { m.MustRejoin, m.Refused = true, "older"; silent(m) }),
			member(3, Voter, func(m *ClusterMember) { m.Version = "2" }), member(4, Voter, nil), member(5, Voter, func(m *ClusterMember) { m.Differs = []string{"tls"} }),
			member(6, Learner, never), member(7, Learner, func(m *ClusterMember) { m.Refused = "too old" }),
		}}, []string{
			"bad: member 2 at host:1 must join again, because its disk has lost acknowledged changes: run 'beanpole cluster rejoin DIR'",
			"so-so: member 6 at host:1 is a learner and cannot be reached",
			"bad: member 7 at host:1 is not accepted: too old",
			"bad: the cluster survives the loss of 1 member",
			"so-so: member 5 has settings that differ from the leader's, which apply: tls",
			"so-so: the members run different versions: 1, 2",
		}},
		// Members with a full disk, and members that are catching up, do not count.
		{Cluster{Leader: 1, Quorum: true, Members: []ClusterMember{
			member(1, Leader, free(400<<20)), member(2, Voter, free(3<<20)), member(3, Voter, nil),
		}}, []string{
			"so-so: member 1 at host:1 has 400 MiB left on its disk",
			"bad: member 2 at host:1 has a full disk: 3 MiB are left",
			"bad: the cluster survives no further loss",
		}},
		{Cluster{Leader: 1, Quorum: true, Members: []ClusterMember{
			member(1, Leader, func(m *ClusterMember) { m.Trouble = "this member cannot write its journal: no space left on device" }),
			member(2, Voter, func(m *ClusterMember) { m.CatchingUp, m.Progress = true, &Progress{Lag: 27001} }),
			member(3, Voter, func(m *ClusterMember) { m.CatchingUp, m.Received = true, 350<<20 }),
		}}, []string{
			"bad: member 1 at host:1 has a problem:  cannot write its journal: no space left on device",
			"bad: member 2 at host:1 is catching up: it lacks 27001 entries",
			"bad: member 3 at host:1 is catching up: it has received 350 MiB of the queue",
			"bad: a majority of the members is full, failing or catching up: puts can fail or wait",
		}},
		{Cluster{Leader: 1, Quorum: true, Members: []ClusterMember{
			member(1, Leader, nil), member(2, Voter, func(m *ClusterMember) { m.KeepCopy = true; silent(m) }), member(3, Voter, nil),
		}}, []string{
			"bad: member 2 at host:1 has stopped with acknowledged changes that the cluster lacks: keep a copy of its directory",
			"bad: the cluster survives no further loss",
		}},
		// A rejoin needs a majority.
		{Cluster{Since: 9, Members: []ClusterMember{member(1, Voter, nil), member(2, Voter, func(m *ClusterMember) { m.MustRejoin = true }), member(3, Voter, func(m *ClusterMember) { m.MustRejoin = true })}},
			[]string{"bad: no leader for 9s", "bad: member 2 at host:1 has lost acknowledged changes, and so has a majority of the members, which 'rejoin' requires: ", "bad: member 3"}},
	} {
		var got []string
		for _, p := range c.cluster.Problems() {
			got = append(got, map[bool]string{true: "bad: ", false: "so-so: "}[p.Bad]+p.Text)
		}
		if len(got) == 0 {
			got = append(got, c.cluster.Summary())
		}
		for i, text := range got {
			if i >= len(c.want) || !strings.HasPrefix(text, c.want[i]) {
				t.Errorf("%q, want %q", got, c.want)
				break
			}
		}
		if len(got) < len(c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
