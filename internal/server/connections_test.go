package server

import (
	"net"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// connections returns the server's connections, and disconnects them on request.
func (r *rig) connections(disconnect bool) (all []Connection) {
	var sessions []*engine.Session
	r.broker.Call(func(e *engine.Engine, now int64) {
		sessions, _ = e.Sessions(0, 100)
		for _, s := range sessions {
			if c, ok := r.Connection(e, now, s); ok {
				all = append(all, c)
			}
		}
	})
	if disconnect {
		for _, s := range sessions {
			r.Disconnect(s)
		}
	}
	return all
}

// When an operator closes a connection, it loses its reserved jobs, even if the client
// waits or does not read.
func TestDisconnect(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			r := start(t, Options{})
			c := r.dialListener(listenOn(t, network))
			c.do("put 0 0 60 1\na\n", "INSERTED 1\n")
			c.do("use mail\nreserve\n", "USING mail\nRESERVED 1 1\na\n")
			all := r.connections(true)
			if len(all) != 1 {
				t.Fatalf("%d connections", len(all))
			}
			want := "unix"
			if network == "tcp" {
				want = c.nc.(net.Conn).LocalAddr().String()
			}
			if got := all[0]; got.Address != want || got.Using != "mail" || got.Held != 1 || got.Holds[0].ID != 1 || got.Waiting || got.ID == 0 {
				t.Errorf("%+v, want the address %s", got, want)
			}
			c.wantEnd()
			d := r.dialListener(listenOn(t, network))
			d.do("reserve\n", "RESERVED 1 1\na\n")
			d.send("reserve\n")
			for !r.connections(false)[0].Waiting {
			}
			r.connections(true)
			d.wantEnd()
		})
	}
}

// A connection reports its last command, its idle time, and the time that it has held a
// job, which a touch does not reset.
func TestConnectionIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{})
		c := r.dial()
		time.Sleep(time.Minute)
		want := func(last string, idle, held time.Duration) {
			t.Helper()
			if got := r.connections(false)[0]; got.Last != last || got.Idle.Round(time.Second) != idle || time.Duration(got.HeldFor).Round(time.Second) != held {
				t.Errorf("last %q, idle %v, held %v; want %q, %v, %v", got.Last, got.Idle, time.Duration(got.HeldFor), last, idle, held)
			}
		}
		want("", time.Minute, 0)
		c.do("put 0 0 999 1\na\nreserve\n", "INSERTED 1\nRESERVED 1 1\na\n")
		time.Sleep(20 * time.Second)
		want("reserve", 20*time.Second, 20*time.Second)
		c.do("put 0 0 999 1\na\nreserve\ntouch 1\n", "INSERTED 2\nRESERVED 2 1\na\nTOUCHED\n")
		time.Sleep(10 * time.Second)
		want("touch", 10*time.Second, 30*time.Second)
		c.do("delete 1\n", "DELETED\n")
		want("delete", 0, 10*time.Second)
	})
}
