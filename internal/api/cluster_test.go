package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
)

func oneMember() (admin.Cluster, error) {
	return admin.Cluster{Leader: 41, Term: 7, Quorum: true, Members: []admin.ClusterMember{{ID: 41, Address: "10.0.0.1:11400", Role: "leader", Reachable: true, Progress: &admin.Progress{Applied: 9}, Version: "1.2.3"}}}, nil
}

func TestNoCluster(t *testing.T) {
	r := start(t, Options{})
	r.want(404, "GET", "/cluster", "", nil)
	r.want(404, "POST", "/cluster/transfer", "", nil)
}

// A through is a connection to a leader in the same process.
type through struct {
	leader http.Handler
	err    error
}

func (t *through) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.err != nil {
		return nil, t.err
	}
	w := httptest.NewRecorder()
	t.leader.ServeHTTP(w, r.Clone(r.Context()))
	return w.Result(), nil
}

// A follower forwards requests about the queue with the caller's name, and the leader
// determines the rights.
func TestLeader(t *testing.T) {
	known := rightsPolicy(t)
	leader := start(t, Options{
		Leader: func() (http.RoundTripper, error) { return nil, nil },
		IdentifyByName: func(name string, client netip.Addr) (*access.Identity, bool) {
			if client.String() != "192.0.2.1" {
				t.Errorf("the leader got the client address %v", client)
			}
			return known[name], true
		},
	})
	leader.talk("put 0 0 60 1\r\na")
	way := &through{leader: leader.FromMembers()}
	var nobody error
	who := "stats"
	partial := false
	follower := start(t, Options{
		Leader: func() (http.RoundTripper, error) {
			if nobody != nil {
				return nil, nobody
			}
			return way, nil
		},
		Installing: func() bool { return partial },
		Identify:   func(*http.Request) (*access.Identity, bool) { return known[who], true },
		Cluster:    oneMember,
	})
	follower.want(200, "GET", "/jobs/1", "", nil)
	who = "manage"
	follower.want(204, "POST", "/jobs/1/bury", "", nil)
	if log := leader.log.String(); !strings.Contains(log, "operation=buryJob identity=manage client=192.0.2.1:1234 job=1 tube=default result=ok") {
		t.Errorf("the leader logged %s", log)
	}
	if strings.Contains(follower.log.String(), "buryJob") {
		t.Errorf("the follower logged %s", follower.log)
	}
	who = "stats"
	follower.want(404, "GET", "/jobs/7", "", nil)
	follower.want(200, "GET", "/cluster", "", nil)
	follower.want(403, "DELETE", "/jobs/1", "", nil)
	who = "both"

	// If the leader does not answer, the follower answers read-only requests from its own
	// queue.
	way.err = errors.New("no route to host")
	var p problem
	follower.want(503, "DELETE", "/jobs/1", "", &p)
	if !strings.Contains(p.Detail, "might have executed the request (no route to host)") {
		t.Errorf("%+v", p)
	}
	way.err = fmt.Errorf("%w: connection refused", ErrNotSent)
	follower.want(503, "DELETE", "/jobs/1", "", &p)
	if strings.Contains(p.Detail, "happened") || !strings.Contains(p.Detail, "refused") {
		t.Errorf("%+v", p)
	}
	follower.want(404, "GET", "/jobs/1", "", nil)
	nobody = errors.New("there is no leader")
	follower.want(404, "GET", "/jobs/1", "", nil)

	// If the follower's queue is incomplete, it does not answer from it.
	partial = true
	follower.want(503, "GET", "/jobs/1", "", &p)
	if !strings.Contains(p.Detail, "receiving the queue") {
		t.Errorf("%+v", p)
	}
	nobody = nil // the leader cannot be reached
	follower.want(503, "GET", "/export", "", nil)
	way.err = nil
	follower.want(200, "GET", "/jobs/1", "", nil)

	// A forwarded request is not forwarded again.
	partial, way.leader = false, follower.FromMembers()
	follower.opt.IdentifyByName = leader.opt.IdentifyByName
	follower.want(503, "DELETE", "/jobs/1", "", nil)
}

// While there is no leader, a change waits. If no leader is elected in time, the error
// states that.
func TestChangeAwaitsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := start(t, Options{
			Leader:         func() (http.RoundTripper, error) { return nil, nil },
			IdentifyByName: func(string, netip.Addr) (*access.Identity, bool) { return new(access.Control).ByName("") },
		})
		leader.talk("put 0 0 60 1\r\na")
		way := &through{leader: leader.FromMembers()}
		var elected atomic.Bool
		follower := start(t, Options{Leader: func() (http.RoundTripper, error) {
			if !elected.Load() {
				return nil, errors.New("there is no leader")
			}
			return way, nil
		}})
		var p problem
		if follower.want(503, "POST", "/jobs/1/bury", "", &p); p.Detail != "there is no leader" {
			t.Errorf("%+v", p)
		}
		time.AfterFunc(3*time.Second, func() { elected.Store(true) })
		follower.want(204, "POST", "/jobs/1/bury", "", nil)
	})
}

// A follower forwards a whole file of jobs, even if the length is unknown, as it is in
// requests from the console.
func TestLeaderReceivesFile(t *testing.T) {
	leader := start(t, Options{
		Leader:         func() (http.RoundTripper, error) { return nil, nil },
		IdentifyByName: func(string, netip.Addr) (*access.Identity, bool) { return new(access.Control).ByName("") },
	})
	s := httptest.NewServer(leader.FromMembers())
	t.Cleanup(s.Close)
	way := &over{to: s.Listener.Addr().String()}
	t.Cleanup(way.CloseIdleConnections)
	follower := start(t, Options{Leader: func() (http.RoundTripper, error) { return way, nil }})
	const line = `{"body":"a"}` + "\n"
	for _, length := range []int64{0, -1, int64(len(line))} {
		w := httptest.NewRecorder()
		bring := httptest.NewRequest("POST", Prefix+"/tubes/mail/import", strings.NewReader(line))
		bring.ContentLength = length
		bring.Header.Set("Content-Type", ndjson)
		if follower.ServeHTTP(w, bring); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"imported":1`) {
			t.Errorf("a file of %d bytes: %d %s", length, w.Code, w.Body)
		}
	}
}

// An over is a network connection to a leader.
type over struct {
	http.Transport
	to string
}

func (o *over) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = o.to
	return o.Transport.RoundTrip(r)
}

// The findings include problems of the cluster.
func TestClusterFindings(t *testing.T) {
	up := func(id uint64, role admin.Role, version string) admin.ClusterMember {
		return admin.ClusterMember{ID: id, Address: "host:1", Role: role, Reachable: true, Version: version}
	}
	for _, c := range []struct {
		cluster admin.Cluster
		err     error
		want    []string // severities with a part of each text
	}{
		{admin.Cluster{Leader: 1, Quorum: true, Members: []admin.ClusterMember{up(1, "leader", "1"), up(2, "voter", "1")}}, nil, nil},
		{admin.Cluster{Members: []admin.ClusterMember{up(1, "voter", "1")}}, nil, []string{"bad no leader"}},
		{admin.Cluster{Leader: 1, Members: []admin.ClusterMember{up(1, "leader", "1"), {ID: 2, Role: "voter"}, {ID: 3, Role: "voter"}}}, nil,
			[]string{"bad the leader cannot reach a majority", "bad member 2 at  cannot be reached", "bad member 3"}},
		{admin.Cluster{Leader: 1, Quorum: true, Members: []admin.ClusterMember{up(1, "leader", "1"), up(2, "voter", "2"), up(3, "voter", "2"), up(4, "voter", ""), {ID: 5, Role: "voter"}, {ID: 6, Role: "learner"}}}, nil,
			[]string{"bad member 5 at  cannot be reached", "bad the cluster survives the loss of 1 member", "warning member 6 at  is a learner", "warning the members run different versions: 1, 2"}},
		{admin.Cluster{}, errors.New("closed"), []string{"bad this member cannot get the state of the cluster: closed"}},
	} {
		r := start(t, Options{Cluster: func() (admin.Cluster, error) { return c.cluster, c.err }})
		var found admin.Attention
		r.want(200, "GET", "/attention", "", &found)
		if len(found.Findings) != len(c.want) {
			t.Errorf("%+v: %+v", c.cluster, found)
			continue
		}
		for i, f := range found.Findings {
			if f.Kind != "cluster" || !strings.HasPrefix(f.Severity+" "+f.Text, c.want[i]) {
				t.Errorf("%+v, want %s", f, c.want[i])
			}
		}
	}
}
