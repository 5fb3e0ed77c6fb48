package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/worker"
)

// Clients of other members keep their connections, jobs and waits when the leader is
// killed or leaves. All clients keep them when the leadership is transferred.
func TestFailover(t *testing.T) {
	t.Parallel()
	if isolate(t) {
		return
	}
	c := newGroup(newSoak(t))
	defer c.stop()
	c.awaitAll(0)
	for round, how := range []string{"transfer", "kill", "transfer", "kill", "leave"} {
		leader := c.leader()
		var clients []*failoverClient
		for m, p := range c.members {
			for n := range 20 {
				k := newFailoverClient(t, p)
				k.tube = fmt.Sprintf("t%d-%d-%d", round, m, n)
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
		// A member reads this reply after the states of its clients, which the leader sends
		// later than it counts them.
		for _, p := range c.members {
			until(t, "the reserves wait", func() bool { return p.stats()["current-waiting"] == "30" })
		}
		if how == "kill" {
			leader.kill()
		} else {
			c.must(func() error { _, err := leader.command("cluster", how, leader.dir); return err }())
		}
		next := c.awaitLeaderBut(leader)
		producer := newFailoverClient(t, next)
		for _, k := range clients {
			switch {
			case how != "transfer" && k.member == leader:
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
		switch how {
		case "leave":
			<-leader.srv.Exited // stop would report the exit code as an error
			return
		case "kill":
			c.must(leader.start())
		}
		c.awaitAll(0)
	}
}

// A Go worker continues on another member when its own member is killed. The context of
// the job reports the loss, and the worker repeats the delete.
func TestWorkerFailover(t *testing.T) {
	t.Parallel()
	if isolate(t) {
		return
	}
	c := newGroup(newSoak(t))
	defer c.stop()
	c.awaitAll(0)
	own := c.leader().next()
	started, lost, ended := make(chan bool, 1), make(chan error, 1), make(chan worker.Outcome, 1)
	w, err := worker.New(func(ctx context.Context, _ *worker.Job) error {
		started <- true
		<-ctx.Done()
		lost <- context.Cause(ctx)
		return nil
	}, &worker.Options{
		Servers: []string{own.clients + "," + own.next().clients + "," + own.next().next().clients},
		Tubes:   []string{"work"},
		Timeout: patience,
		Hooks:   worker.Hooks{Finish: func(_ context.Context, _ *worker.Job, o worker.Outcome) { ended <- o }},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	defer done.Wait()
	defer cancel()
	producer := newFailoverClient(t, own.next())
	producer.do("use work", "USING work")
	id := producer.do("put 0 0 3 1\r\nx", "INSERTED ")
	<-started
	own.kill()
	if err := <-lost; err != worker.ErrLost {
		t.Errorf("the context ends with %v", err)
	}
	if o := <-ended; o.Action != worker.Deleted {
		t.Errorf("the job ends with %+v", o)
	}
	producer.do("peek "+id, "NOT_FOUND")
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

func newFailoverClient(t *testing.T, member *process) *failoverClient {
	conn := member.dial()
	return &failoverClient{t: t, member: member, conn: conn, in: bufio.NewReader(conn)}
}

// do sends a command, checks that the reply starts with prefix, and returns the rest.
func (k *failoverClient) do(command, prefix string) string {
	k.t.Helper()
	io.WriteString(k.conn, command+"\r\n") // the read after it reports the error
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
