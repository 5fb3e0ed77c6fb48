package server

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memnet"
)

// dialFrom connects a client of an address of the loopback network.
func dialFrom(t *testing.T, ip string, l net.Listener) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	nc, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

// A flood of commands gets no more than its rate, however many connections it comes from,
// and the others do not notice. It is not refused: what is beyond waits. The limit can be
// lifted meanwhile.
func TestFloodIsThrottled(t *testing.T) {
	for _, loops := range []int{1, 3} {
		for name, log := range map[string]broker.Log{"memory": nil, "log": &changedLog{}} {
			t.Run(name+"/loops="+strconv.Itoa(loops), func(t *testing.T) {
				const rate, flooders, each = 200, 5, 400
				begun := time.Now()
				r := startLogged(t, Options{Loops: loops, Limits: access.Limits{CommandsPerSecond: rate}}, broker.Options{Log: log})
				l := listenOn(t, "tcp")
				r.serve(l)
				var flood [flooders]*client
				for i := range flood {
					flood[i] = dialFrom(t, "127.0.0.1", l)
					flood[i].send(strings.Repeat("list-tube-used\n", each))
				}
				other := dialFrom(t, "127.0.0.2", l)
				other.do("put 0 0 9 1\nx\nreserve\ndelete 1\n", "INSERTED 1\nRESERVED 1 1\nx\nDELETED\n")
				r.eventually("the flood is throttled", func() bool { return r.access.Throttled() > 0 })
				for range 20 {
					done, err := strconv.ParseFloat(other.stat("cmd-list-tube-used"), 64)
					// Loops that ask at the same time get as many tokens as one could have.
					ahead := float64((loops - 1) * 128)
					if most := rate + rate*time.Since(begun).Seconds() + 1 + ahead; err != nil || done > most {
						t.Fatalf("%v commands of the flood were executed (%v), want %v at most", done, err, most)
					}
				}
				if n := other.stat("throttled"); n == "0" {
					t.Error("stats does not tell that anybody was throttled")
				}
				r.SetLimits(access.Limits{CommandsPerSecond: 1_000_000})
				for _, c := range flood {
					c.want(strings.Repeat("USING default\n", each))
				}
				r.SetLimits(access.Limits{})
				for _, c := range flood {
					c.do(strings.Repeat("list-tube-used\n", each), strings.Repeat("USING default\n", each))
				}
			})
		}
	}
}

// A client that is throttled and goes is noticed, whichever way it goes, and what it has
// sent before is executed if it has not reset the connection.
func TestThrottledClientGoes(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			r := start(t, Options{Limits: access.Limits{CommandsPerSecond: 50}})
			l := listenOn(t, network)
			c := r.dialListener(l)
			const puts = 60
			c.send(strings.Repeat("put 0 0 9 1\nx\n", puts))
			r.eventually("it is throttled", func() bool { return r.access.Throttled() > 0 })
			c.halfClose()
			c.tb = t
			for range puts {
				c.line("INSERTED")
			}
			c.wantEnd()
			r.eventually("it has gone", func() bool { return r.stats().Sessions == 0 })
			if n := r.stats().Ready; n != puts {
				t.Errorf("%d jobs, want %d", n, puts)
			}
			if network == "tcp" {
				r.SetLimits(access.Limits{CommandsPerSecond: 1})
				c := dialTo(t, l)
				n := r.access.Throttled()
				c.send(strings.Repeat("use x\n", 1000))
				r.eventually("it is throttled", func() bool { return r.access.Throttled() > n })
				c.nc.(*net.TCPConn).SetLinger(0)
				c.nc.Close()
				r.eventually("the reset is noticed", func() bool { return r.stats().Sessions == 0 })
				if err := errors.Join(r.Shutdown(t.Context()), r.Check()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The reset of each client that is throttled is noticed, though many come at once, and none has a token for a long time.
func TestManyThrottledClientsGo(t *testing.T) {
	const clients = 5 * leavesPerPass
	r := start(t, Options{Loops: 1, Limits: access.Limits{CommandsPerSecond: 1}})
	l := listenOn(t, "tcp")
	r.serve(l)
	r.access.LimiterOf(nil, netip.MustParseAddr("127.0.0.1")).Take(r.now(), 1_000_000)
	var all [clients]*client
	for i := range all {
		all[i] = dialFrom(t, "127.0.0.1", l)
		all[i].send("use x\n")
	}
	r.eventually("all are throttled", func() bool { return r.access.Throttled() == clients })
	r.broker.Call(func(*engine.Engine, int64) { // the loop has no turn before the last has gone
		for _, c := range all {
			c.nc.(*net.TCPConn).SetLinger(0)
			c.nc.Close()
		}
	})
	r.eventually("the resets are noticed", func() bool { return r.stats().Sessions == 0 })
}

// An identity has one limit on all its connections, from the moment that it is known, and
// its own goes before that of all.
func TestLimitOfIdentity(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Loops: 1, Limits: access.Limits{CommandsPerSecond: 1_000_000, OfIdentity: map[string]int{"token": 20, "network": 0}}, Access: testAccess(t)})
	l := listenOn(t, "tcp")
	r.serve(l)
	var clients [2]*client
	for i := range clients {
		clients[i] = dialFrom(t, "127.0.0.1", l)
		clients[i].do("auth "+testToken+"\n", "AUTHENTICATED\n")
	}
	const each, rate = 30, 20
	begun := time.Now()
	for _, c := range clients {
		c.send(strings.Repeat("list-tube-used\n", each))
	}
	free := dialFrom(t, "127.0.0.2", l)
	free.do(strings.Repeat("list-tube-used\n", 5000), strings.Repeat("USING default\n", 5000))
	done, err := strconv.ParseFloat(free.stat("cmd-list-tube-used"), 64)
	if most := 5000 + rate + rate*time.Since(begun).Seconds() + 1; err != nil || done > most {
		t.Errorf("%v commands were executed (%v), want %v at most", done, err, most)
	}
	for _, c := range clients {
		c.want(strings.Repeat("USING default\n", each))
	}
}

// Strangers who wait for a token keep nobody of their address from saying who he is, even if
// others come in their place again and again.
func TestStrangersAreNotInTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Limits: access.Limits{CommandsPerSecond: 1}, Access: testAccess(t)})
		l := memnet.Listen()
		r.serveWith(l, ListenOptions{Terms: access.Terms{Required: true}})
		dial := func() *client {
			nc, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			return newClient(t, nc)
		}
		begun := time.Now()
		for range 20 {
			var strangers [20]*client
			for i := range strangers {
				strangers[i] = dial()
				strangers[i].send("auth " + testToken + "x\n")
			}
			synctest.Wait()
			dial().do("auth "+testToken+"\n", "AUTHENTICATED\n")
			for _, c := range strangers {
				c.nc.Close()
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it has taken %v", took)
		}
	})
}

// Strangers who must prove who they are have no more time for that when they are throttled.
func TestThrottledStrangers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Limits: access.Limits{CommandsPerSecond: 1}, Access: testAccess(t)})
		l := memnet.Listen()
		r.serveWith(l, ListenOptions{Terms: access.Terms{Required: true}})
		begun := time.Now()
		for range 30 {
			nc, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			newClient(t, nc).send("use x\n")
		}
		time.Sleep(conversation.AuthTimeout + time.Second)
		synctest.Wait()
		if n := r.stats().Sessions; n != 0 {
			t.Errorf("%d sessions after %v, want none", n, time.Since(begun))
		}
	})
}

// count returns how often a command was given.
func (r *rig) count(verb string) (n uint64) {
	r.broker.Call(func(*engine.Engine, int64) { n = r.Counts().Commands[verb] })
	return n
}
