package server

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// startLinkedMembers starts members with streams of package mux and with event loops, as
// in the program. Clients must connect to them through sockets.
func startLinkedMembers(t *testing.T, n int, opt Options, change ...func(member uint64, opt *Options)) *group {
	t.Helper()
	c := &group{}
	for i := range n {
		id := uint64(i + 1)
		o := opt
		for _, change := range change {
			change(id, &o)
		}
		var mu sync.Mutex
		links := make(map[uint64]*mux.Session)
		o.Cluster = &Cluster{ID: id, Dial: func(leader uint64) (MemberStream, error) {
			mu.Lock()
			defer mu.Unlock()
			link := links[leader]
			if link == nil {
				link = c.link(t, id, leader)
				links[leader] = link
			}
			return link.Open()
		}, Stats: func(asked uint64) []wire.Stat {
			return []wire.Stat{{Key: "cluster-member", Value: strconv.FormatUint(asked, 10)}}
		}}
		r := start(t, o)
		r.serve(r.tcp())
		r.eventually("its loops run", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.mu.loops.all) > 0
		})
		c.members = append(c.members, r)
	}
	return c
}

// tcp returns the listener to which dialMember connects.
func (r *rig) tcp() net.Listener {
	l := listenOn(r.tb, "tcp")
	r.addr = l.Addr().String()
	return l
}

// dialMember connects a client to a member of a linked group.
func (r *rig) dialMember() *client {
	r.tb.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.tb.Fatal(err)
	}
	return newClient(r.tb, nc)
}

// waitServed waits until the server serves and has accepted the given numbers of
// connections.
func (r *rig) waitServed(served, accepted int) {
	r.eventually("so many are served", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.slots.Lock()
		defer r.slots.Unlock()
		return r.mu.sockets == served && r.slots.taken == accepted
	})
}

// Clients of other members need no goroutines, neither on their member nor on the leader.
func TestProxyInLoops(t *testing.T) {
	c := startLinkedMembers(t, 3, Options{MaxJobSize: 1 << 20})
	c.elect(1)
	leader, follower, worker := c.members[0].dialMember(), c.members[1].dialMember(), c.members[2].dialMember()
	follower.do("use mail\nput 0 0 60 5\nhello\n", "USING mail\nINSERTED 1\n")
	leader.do("peek 1\n", "FOUND 1 5\nhello\n")
	worker.send("watch mail\nreserve\n")
	worker.want("WATCHING 2\nRESERVED 1 5\nhello\n")
	for i, client := range []*client{leader, follower, worker} {
		if got := client.stat("cluster-member"); got != strconv.Itoa(i+1) {
			t.Errorf("a client of member %d reached member %s", i+1, got)
		}
	}
	c.members[0].waitServed(3, 1)
	c.members[1].waitServed(0, 1)
	c.members[2].waitServed(0, 1)
	large := strings.Repeat("x", 1<<20)
	for i := range 5 { // more bytes than the window
		follower.do(fmt.Sprintf("put 0 0 60 %d\n%s\n", len(large), large), fmt.Sprintf("INSERTED %d\n", i+2))
	}
	for i := range 5 {
		worker.do("reserve\n", fmt.Sprintf("RESERVED %d %d\n%s\n", i+2, len(large), large))
	}
	worker.send("reserve\n")
	follower.do("put 0 0 60 1\nx\n", "INSERTED 7\n")
	worker.want("RESERVED 7 1\nx\n")
	worker.nc.Close()
	c.members[2].waitServed(0, 0)
	c.members[0].waitServed(2, 1)
	leader.do("use mail\npeek-ready\n", "USING mail\nFOUND 1 5\nhello\n")
}

// A client that does not read its replies does not delay other clients, and gets its
// replies when it reads.
func TestProxyOfSlowReader(t *testing.T) {
	c := startLinkedMembers(t, 2, Options{MaxJobSize: 1 << 20})
	c.elect(1)
	other, slow := c.members[1].dialMember(), c.members[1].dialMember()
	large := strings.Repeat("x", 1<<20)
	other.do(fmt.Sprintf("put 0 0 60 %d\n%s\n", len(large), large), "INSERTED 1\n")
	const peeks = 30
	slow.send(strings.Repeat("peek 1\n", peeks))
	other.do("put 0 0 60 1\nx\n", "INSERTED 2\n")
	slow.halfClose()
	for range peeks {
		slow.want(fmt.Sprintf("FOUND 1 %d\n%s\n", len(large), large))
	}
	slow.wantEnd()
}

// Event loops deliver the last replies before a connection ends.
func TestProxyEndsInLoops(t *testing.T) {
	c := startLinkedMembers(t, 2, Options{})
	c.elect(1)
	half := c.members[1].dialMember()
	half.send("put 0 0 60 1\nx\n")
	half.halfClose()
	half.want("INSERTED 1\n")
	half.wantEnd()
	half.nc.Close()
	quits := c.members[1].dialMember()
	quits.send("put 0 0 60 1\nx\nquit\n")
	quits.want("INSERTED 2\n")
	quits.wantEnd()
	quits.nc.Close()
	waits := c.members[1].dialMember()
	waits.send("watch none\nignore default\nreserve\n")
	waits.want("WATCHING 2\nWATCHING 1\n")
	waits.halfClose()
	waits.want("TIMED_OUT\n")
	waits.wantEnd()
	waits.nc.Close()
	c.members[0].waitServed(0, 0)
	c.members[1].waitServed(0, 0)
}

// When the leader changes, clients of all members keep their connections and tubes.
func TestLeadershipKeepsClients(t *testing.T) {
	c := startLinkedMembers(t, 3, Options{})
	c.elect(1)
	var clients []*client
	for i := range 30 {
		client := c.members[i%3].dialMember()
		client.do("use x\nput 0 0 60 1\nx\n", fmt.Sprintf("USING x\nINSERTED %d\n", i+1))
		clients = append(clients, client)
	}
	c.elect(2)
	for _, client := range clients {
		client.do("list-tube-used\n", "USING x\n")
	}
	c.members[1].waitServed(len(clients), len(clients)/3)
}
