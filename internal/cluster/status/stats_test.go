package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// What stats shows is what a command reads from it.
func TestStats(t *testing.T) {
	s := apitype.Cluster{Self: 42, Leader: 41, Term: 7, Quorum: true, Members: []apitype.ClusterMember{
		{ID: 41, Address: "10.0.0.1:11400", Role: "leader", Reachable: true, Progress: &apitype.Progress{Applied: 9}, Version: "1.2.3"},
		{ID: 42, Address: "[::1]:11400", Role: "learner", Progress: &apitype.Progress{Applied: 5, Lag: 5}, CatchingUp: true},
		{ID: 43, Address: "10.0.0.3:11400", Role: "voter", MemberHealth: apitype.MemberHealth{Trouble: "this member cannot write its journal: no space", DiskFree: new(int64(7 << 20))}},
	}}
	all := make(map[string]string)
	for _, stat := range Stats(&s, 42) {
		all[stat.Key] = stat.Value
	}
	if all["cluster-members"] != "3" || all["cluster-member"] != "42" || all["cluster-lag"] != "5" || all["cluster-quorum"] != "yes" {
		t.Errorf("%v", all)
	}
	read, err := ReadStats(all)
	if diff := cmp.Diff(s, read); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for key := range all {
		if key == "cluster-member" || key == "cluster-lag" || key == "cluster-quorum" {
			continue // for people
		}
		value := all[key]
		all[key] = "-"
		if _, err := ReadStats(all); err == nil {
			t.Errorf("%s: nonsense is read", key)
		}
		all[key] = value
	}
	if _, err := ReadStats(map[string]string{}); err == nil {
		t.Error("a single server is taken for a member")
	}
}
