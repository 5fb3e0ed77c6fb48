package api

import "testing"

func oneMember() (Cluster, error) {
	return Cluster{Leader: 41, Term: 7, Quorum: true, Members: []ClusterMember{{ID: 41, Address: "10.0.0.1:11400", Role: "leader", Reachable: true, Applied: 9, Version: "1.2.3"}}}, nil
}

func TestNoCluster(t *testing.T) {
	r := start(t, Options{})
	r.want(404, "GET", "/cluster", "", nil)
}

// Where nothing can be changed, what only reads goes on.
func TestMayChange(t *testing.T) {
	why := "only the leader can change something"
	r := start(t, Options{MayChange: func() string { return why }})
	r.talk("put 0 0 60 1\r\na")
	var p problem
	r.want(503, "POST", "/jobs/1/bury", "", &p)
	if p.Detail != why {
		t.Errorf("%+v", p)
	}
	r.want(200, "GET", "/jobs/1", "", nil)
	why = ""
	r.want(204, "POST", "/jobs/1/bury", "", nil)
}
