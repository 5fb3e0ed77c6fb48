package admin

import (
	"strings"
	"testing"
)

// What is wrong is said in words, and what is well, too.
func TestProblems(t *testing.T) {
	member := func(id uint64, role Role, change func(*ClusterMember)) ClusterMember {
		m := ClusterMember{ID: id, Address: "host:1", Role: role, Reachable: true, Version: "1"}
		if change != nil {
			change(&m)
		}
		return m
	}
	silent := func(m *ClusterMember) { m.Reachable, m.Heard = false, new(int64(320)) }
	never := func(m *ClusterMember) { m.Reachable = false }
	for _, c := range []struct {
		cluster Cluster
		want    []string
	}{
		{Cluster{Leader: 1, Since: 3600, Quorum: true, Members: []ClusterMember{member(1, Leader, nil), member(2, Voter, nil), member(3, Voter, nil)}},
			[]string{"all is well: member 1 has led for 1h0m0s, 3 of 3 members are reachable, the cluster bears the loss of 1"}},
		{Cluster{Since: 90, Members: []ClusterMember{member(1, Voter, nil), member(2, Voter, func(m *ClusterMember) { m.Refuses = "too old" })}},
			[]string{"bad: no leader is known for 1m30s", "bad: member 2 at host:1 does not take in the member that was asked: too old"}},
		{Cluster{Leader: 1, Members: []ClusterMember{member(1, Leader, nil), member(2, Voter, silent), member(3, Voter, never)}}, []string{
			"bad: the leader does not hear a majority",
			"bad: member 2 at host:1 cannot be reached for 5m20s; the cluster bears no further loss",
			"bad: member 3 at host:1 cannot be reached; the cluster bears no further loss",
		}},
		{Cluster{Leader: 1, Quorum: true, Members: []ClusterMember{
			member(1, Leader, nil), member(2, Voter, func(m *ClusterMember) { m.MustRejoin, m.Refused = true, "older"; silent(m) }),
			member(3, Voter, func(m *ClusterMember) { m.Version = "2" }), member(4, Voter, nil), member(5, Voter, func(m *ClusterMember) { m.Differs = []string{"tls"} }),
			member(6, Learner, never), member(7, Learner, func(m *ClusterMember) { m.Refused = "too old" }),
		}}, []string{
			"bad: member 2 at host:1 must join again",
			"bad: member 2 at host:1 cannot be reached for 5m20s; the cluster bears the loss of 1 more",
			"so-so: member 6 at host:1, which learns, cannot be reached",
			"bad: member 7 at host:1 is not taken in: too old",
			"so-so: member 5 has other settings than the leader, whose count: tls",
			"so-so: the members run different versions: 1, 2",
		}},
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
