package server

import (
	"fmt"
	"testing"
)

// first sends commands and checks the first line of the replies.
func (c *client) first(commands, want string) {
	c.tb.Helper()
	c.send(commands)
	if got := c.line(""); got != want {
		c.tb.Fatalf("got %q, want %q", got, want)
	}
}

// When a client has closed its connection, other clients immediately see the effect of
// all its commands, even if different loops serve them. beanstalkd has one thread and
// behaves the same.
func TestCloseIsNotOvertaken(t *testing.T) {
	for _, loops := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("loops=%d", loops), func(t *testing.T) {
			r := start(t, Options{Loops: loops})
			l := listenOn(t, "unix") // with a Unix socket, the end has arrived when Close returns
			r.serve(l)
			looks := dialTo(t, l)
			looks.do("put 0 0 600 1\nx\n", "INSERTED 1\n")
			for i := range 100 {
				holds := dialTo(t, l)
				holds.do("reserve-job 1\n", "RESERVED 1 1\nx\n")
				holds.nc.Close()
				if i%2 == 0 {
					looks.first("reserve-job 1\nrelease 1 0 0\n", "RESERVED 1 1")
					looks.want("x\nRELEASED\n")
				} else if n := looks.stat("current-connections"); n != "1" {
					t.Fatalf("%s connections, want only the client's own", n)
				}
			}
		})
	}
}

// A client that disconnects while it waits in a reserve gets no job.
func TestClosedClientGetsNoJob(t *testing.T) {
	for _, loops := range []int{1, 2} {
		t.Run(fmt.Sprintf("loops=%d", loops), func(t *testing.T) {
			r := start(t, Options{Loops: loops})
			l := listenOn(t, "unix")
			r.serve(l)
			looks := dialTo(t, l)
			for i := range 100 {
				waits := dialTo(t, l)
				waits.send("reserve\n")
				r.eventually("it waits", func() bool { return r.stats().Waiting == 1 })
				waits.nc.Close()
				looks.do("put 0 0 600 1\nx\n", fmt.Sprintf("INSERTED %d\n", i+1))
				looks.first(fmt.Sprintf("delete %d\n", i+1), "DELETED")
			}
		})
	}
}

// A client that has closed its connection is not overtaken even if a member proxies it.
func TestCloseIsNotOvertakenAtFollower(t *testing.T) {
	for _, loops := range []int{1, 2} {
		t.Run(fmt.Sprintf("loops=%d", loops), func(t *testing.T) {
			c := startLinkedMembers(t, 2, Options{Loops: loops})
			c.elect(1)
			l := listenOn(t, "unix")
			c.members[1].serve(l)
			looks := dialTo(t, l)
			looks.do("put 0 0 600 1\nx\n", "INSERTED 1\n")
			for range 50 {
				holds := dialTo(t, l)
				holds.do("reserve-job 1\n", "RESERVED 1 1\nx\n")
				holds.nc.Close()
				looks.first("reserve-job 1\nrelease 1 0 0\n", "RESERVED 1 1")
				looks.want("x\nRELEASED\n")
			}
		})
	}
}
