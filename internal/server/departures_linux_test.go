package server

import (
	"fmt"
	"testing"
)

// first sends commands, and wants a line as the first of the answers.
func (c *client) first(commands, want string) {
	c.tb.Helper()
	c.send(commands)
	if got := c.line(""); got != want {
		c.tb.Fatalf("got %q, want %q", got, want)
	}
}

// What a client has done with its last job or place is there for others as soon as it has closed its connection, whichever
// loops serve them: as with beanstalkd, which has one thread.
func TestCloseIsNotOvertaken(t *testing.T) {
	for _, loops := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("loops=%d", loops), func(t *testing.T) {
			r := start(t, Options{Loops: loops})
			l := listenOn(t, "unix") // so the end is there when Close returns, whatever the kernel is about
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
					t.Fatalf("%s connections, want that of the one who asks", n)
				}
			}
		})
	}
}

// A client that waits in a reserve and has gone is given no job.
func TestWaitingClientIsNotGivenAJobAfterItsEnd(t *testing.T) {
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

// At a member that passes clients on, too.
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
