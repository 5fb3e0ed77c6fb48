package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

func TestStats(t *testing.T) {
	s := apitype.Cluster{Self: 42, Leader: 41, Term: 7, Quorum: true, Members: []apitype.ClusterMember{
		{ID: 41, Address: "10.0.0.1:11400", Role: "leader", Reachable: true, Progress: &apitype.Progress{Applied: 9}, Version: "1.2.3"},
		{ID: 42, Address: "[::1]:11400", Role: "learner", Progress: &apitype.Progress{Applied: 5, Lag: 5}, CatchingUp: true},
		{ID: 43, Address: "10.0.0.3:11400", Role: "voter", MemberHealth: apitype.MemberHealth{Trouble: "cannot write \"x\"\n", DiskFree: new(int64(7 << 20))}},
	}}
	var got strings.Builder
	for _, stat := range Stats(&s, 42) {
		fmt.Fprintf(&got, "%s: %s\n", stat.Key, stat.Value)
	}
	const want = `cluster-members: 3
cluster-leader: 41
cluster-member: 42
cluster-term: 7
cluster-lag: 5
cluster-quorum: yes
cluster-member-1: 41 10.0.0.1:11400 leader yes 9 0 1.2.3 - no
cluster-member-2: 42 [::1]:11400 learner no 5 5 - - yes
cluster-member-3: 43 10.0.0.3:11400 voter no - - - 7 no cannot write  x
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
