package soak

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// Clients of other members keep their connections, jobs and waits when the leader is
// killed. All clients keep them when the leadership is transferred.
func TestFailover(t *testing.T) {
	t.Parallel()
	if isolate(t) {
		return
	}
	c := newGroup(newSoak(t))
	defer c.stop()
	c.awaitAll(0)
	for round, kills := range []bool{false, true, false, true} {
		leader := c.leader()
		var clients []*failoverClient
		for m, p := range c.members {
			for n := range 20 {
				k := &failoverClient{t: t, member: p, conn: p.dial(), tube: fmt.Sprintf("t%d-%d-%d", round, m, n)}
				k.in = bufio.NewReader(k.conn)
				k.do("watch "+k.tube, "WATCHING 2")
				k.do("ignore default", "WATCHING 1")
				k.do("use "+k.tube, "USING "+k.tube)
				if k.holds = n%2 == 0; k.holds {
					k.id = k.do("put 0 0 60 1\r\nx", "INSERTED ")
					k.do("reserve", "RESERVED ")
					k.read("x")
				} else {
					io.WriteString(k.conn, "reserve\r\n")
				}
				clients = append(clients, k)
			}
		}
		until(t, "the reserves wait", func() bool { return leader.stats()["current-waiting"] == "30" })
		if kills {
			leader.kill()
		} else {
			c.must(func() error { _, err := leader.command("cluster", "transfer", leader.dir); return err }())
		}
		next := c.awaitLeaderBut(leader)
		producer := &failoverClient{t: t, conn: next.dial()}
		producer.in = bufio.NewReader(producer.conn)
		for _, k := range clients {
			switch {
			case kills && k.member == leader:
			case k.holds:
				k.do("delete "+k.id, "DELETED")
			default:
				producer.do("use "+k.tube, "USING ")
				producer.do("put 0 0 60 1\r\nx", "INSERTED ")
				id := k.read("RESERVED ")
				k.read("x")
				k.do("delete "+id[:len(id)-len(" 1")], "DELETED")
			}
			k.conn.Close()
		}
		producer.conn.Close()
		if kills {
			c.must(leader.start())
		}
		c.awaitAll(0)
	}
}

// A failoverClient holds a job or waits for one.
type failoverClient struct {
	t      *testing.T
	member *process
	conn   net.Conn
	in     *bufio.Reader
	tube   string
	id     string // id of the held job
	holds  bool
}

// do sends a command, and returns the rest of a reply that starts with a prefix.
func (k *failoverClient) do(command, prefix string) string {
	k.t.Helper()
	io.WriteString(k.conn, command+"\r\n") // read reports an error
	return k.read(prefix)
}

func (k *failoverClient) read(prefix string) string {
	k.t.Helper()
	k.conn.SetReadDeadline(time.Now().Add(patience))
	line, err := k.in.ReadString('\n')
	if err != nil || len(line) < len(prefix)+2 || line[:len(prefix)] != prefix {
		k.t.Fatalf("%s: got %q (%v), want %q", k.tube, line, err, prefix)
	}
	return line[len(prefix) : len(line)-2]
}
