package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// A follower is a member that has a leader.
type follower struct{ Replica }

func (follower) Watch() <-chan struct{}   { return nil }
func (follower) Lead() cluster.Leadership { return cluster.Leadership{Leader: 41, Term: 7} }

// A chief is a member that is the leader.
type chief struct{ Replica }

func (chief) Watch() <-chan struct{}   { return nil }
func (chief) Lead() cluster.Leadership { return cluster.Leadership{Leader: 42, Term: 7, Epoch: 1} }

// A transfer to the member that already leads succeeds.
func TestLeadsAlready(t *testing.T) {
	control := Control{Member: chief{}, Directory: &directory.Directory{}}
	control.Directory.ID = 42
	if _, err := control.Request(t.Context(), 0, []byte(`{"do":"transfer","id":42}`)); err != nil {
		t.Error(err)
	}
}

// leaders contains functions that answer the requests forwarded to the leader, one for
// each request, in order.
type leaders []func(r Request) error

func (l *leaders) Request(_ context.Context, _ uint64, body []byte) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	answer := (*l)[0]
	*l = (*l)[1:]
	return []byte("{}"), answer(r)
}

// A change is sent to the next leader if the first one is no longer the leader or has
// died. A member that is missing by then counts as removed. An id that was never a
// member's is still an error.
func TestLeaderChanges(t *testing.T) {
	noLeader := transport.RemoteError{Code: "not_leader", Text: "this member does not lead"}
	notMember := transport.RemoteError{Code: "not_member", Text: "there is no such member"}
	refuses := func(with error) func(Request) error { return func(Request) error { return with } }
	unless := func(r Request) error {
		if r.IfThere {
			return nil
		}
		return notMember
	}
	for name, c := range map[string]struct {
		leaders leaders
		want    error
	}{
		"leads no more":      {leaders{refuses(noLeader), unless}, nil},
		"does not answer":    {leaders{refuses(errors.New("connection refused")), unless}, nil},
		"nobody was removed": {leaders{unless}, cluster.ErrNotMember},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control := Control{Member: follower{}, Directory: &directory.Directory{}, Transport: &c.leaders}
				control.Directory.ID = 42
				_, err := control.Request(t.Context(), 0, []byte(`{"do":"remove","id":43}`))
				if !errors.Is(err, c.want) {
					t.Errorf("%v", err)
				}
				if len(c.leaders) > 0 {
					t.Errorf("%d leaders were not asked", len(c.leaders))
				}
			})
		})
	}
}

// A loner is a member that has no leader.
type loner struct{ Replica }

func (loner) Status() (cluster.Status, error) {
	known := cluster.Status{Cluster: clusterOf(0)}
	known.Self = 42
	for i := range known.Members {
		known.Members[i].Reachable = true
	}
	return known, nil
}

// clusterOf returns the status of a member that has the given leader.
func clusterOf(leader uint64) apitype.Cluster {
	return apitype.Cluster{Leader: leader, Members: []apitype.ClusterMember{{ID: 41}, {ID: 42}, {ID: 43}, {ID: 44}}}
}

// statuses contains the replies of members to requests for their status.
type statuses struct {
	leader map[uint64]uint64 // leader reported by each member; a missing member does not answer
	asked  []uint64
}

func (s *statuses) Request(_ context.Context, id uint64, body []byte) ([]byte, error) {
	s.asked = append(s.asked, id)
	leader, ok := s.leader[id]
	if !ok {
		return nil, errors.New("no route to host")
	}
	return json.Marshal(clusterOf(leader))
}

// A member without a leader, or whose leader does not answer, asks the other members for
// the leader, and asks that leader for its status. A member that does not answer is
// unreachable.
func TestStatusOfOthers(t *testing.T) {
	for _, c := range []struct {
		leader map[uint64]uint64
		want   uint64 // leader in the reply
		asked  []uint64
	}{
		{map[uint64]uint64{43: 44, 44: 44}, 44, []uint64{0, 41, 43, 44}},
		{map[uint64]uint64{41: 41}, 41, []uint64{0, 41}},
		{map[uint64]uint64{41: 42, 43: 41, 44: 0}, 0, []uint64{0, 41, 43, 44}}, // each reports a wrong leader
		{nil, 0, []uint64{0, 41, 43, 44}},
	} {
		others := statuses{leader: c.leader}
		control := Control{Member: loner{}, Directory: &directory.Directory{}, Transport: &others}
		control.Directory.ID = 42
		text, err := control.Request(t.Context(), 0, []byte(`{"do":"status"}`))
		var got apitype.Cluster
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.Leader != c.want || !slices.Equal(others.asked, c.asked) {
			t.Errorf("%v: member %d leads, %v; asked: %v", c.leader, got.Leader, err, others.asked)
		}
		for _, m := range got.Members {
			if _, answers := c.leader[m.ID]; c.want == 0 && m.Reachable != (answers || m.ID == 42) {
				t.Errorf("%v: %+v", c.leader, m)
			}
		}
	}
}

// A removal is refused if a remaining voter reports that its disk has failed, although
// its messages arrive.
func TestRemoveCountsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := Control{Member: steady{}, Directory: &directory.Directory{}}
		control.Directory.ID = 42
		remove := func() error {
			_, err := control.Request(t.Context(), 0, []byte(`{"do":"remove","id":43}`))
			return err
		}
		if err := remove(); err != nil {
			t.Errorf("all members are well: %v", err)
		}
		control.reports.add(41, report{health: apitype.MemberHealth{Trouble: "the disk has failed"}})
		control.reports.add(44, report{health: apitype.MemberHealth{Trouble: "the disk has failed"}})
		if err := remove(); err == nil {
			t.Error("a member was removed, and one of three voters can acknowledge changes")
		}
	})
}

// A steady is the leader of a cluster from whose members messages arrive all the time.
type steady struct{ chief }

func (steady) Status() (cluster.Status, error) {
	known := cluster.Status{Cluster: clusterOf(42), At: time.Now().UnixNano(), Contacts: make(map[uint64]int64)}
	known.Self = 42
	for i := range known.Members {
		m := &known.Members[i]
		m.Reachable, m.Progress = true, new(apitype.Progress)
		known.Contacts[m.ID] = known.At
	}
	return known, nil
}

func (steady) Membership() (known raftlog.Membership) { return known }
func (steady) Remove(context.Context, uint64) error   { return nil }
