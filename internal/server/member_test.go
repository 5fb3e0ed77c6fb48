package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/test/memnet"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A crew is members of a cluster, with ids from 1 on, each with a queue of its own: only the leader's is
// used.
type crew struct {
	members []*rig
	down    atomic.Bool   // nobody can be reached
	silent  atomic.Uint64 // whoever connects to this member waits in vain
	term    uint64
}

// startCrew starts so many members. Nobody leads.
func startCrew(t *testing.T, n int, opt Options) *crew {
	t.Helper()
	c := &crew{}
	for i := range n {
		id := uint64(i + 1)
		o := opt
		o.Member = &Member{
			ID: id,
			Dial: func(ctx context.Context, leader uint64) (net.Conn, error) {
				if leader == c.silent.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if c.down.Load() || leader > uint64(len(c.members)) {
					return nil, errors.New("unreachable")
				}
				own, other := memnet.Pipe()
				go c.members[leader-1].ServeVisitor(id, other)
				return own, nil
			},
			Stats: func(asked uint64) []wire.Stat {
				return []wire.Stat{{Key: "cluster-member", Value: strconv.FormatUint(asked, 10)}}
			},
		}
		c.members = append(c.members, start(t, o))
	}
	return c
}

// elect makes a member the leader; 0 is nobody.
func (c *crew) elect(leader uint64) {
	c.term++
	for i, r := range c.members {
		if uint64(i+1) != leader { // first: the old leader's clients end before there is another
			r.Follow(Leadership{Leader: leader, Term: c.term})
		}
	}
	if leader != 0 {
		c.members[leader-1].Follow(Leadership{Here: true, Leader: leader, Term: c.term})
	}
}

// A client of any member uses the leader's queue.
func TestRelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 3, Options{})
		c.elect(1)
		leader, follower, worker := c.members[0].dial(), c.members[1].dial(), c.members[2].dial()
		follower.do("use mail\nput 0 0 60 5\nhello\n", "USING mail\nINSERTED 1\n")
		leader.do("peek 1\n", "FOUND 1 5\nhello\n")
		worker.send("watch mail\nreserve\n")
		worker.want("WATCHING 2\nRESERVED 1 5\nhello\n")
		for i, client := range []*client{leader, follower, worker} {
			if got := client.stat("cluster-member"); got != strconv.Itoa(i+1) {
				t.Errorf("a client of member %d has asked member %s", i+1, got)
			}
		}
		worker.nc.Close()
		synctest.Wait()
		leader.do("peek-ready\nuse mail\npeek-ready\n", "NOT_FOUND\nUSING mail\nFOUND 1 5\nhello\n")
		large := strings.Repeat("x", 60_000)
		for range 10 {
			follower.send(fmt.Sprintf("put 0 0 60 %d\n%s\n", len(large), large))
		}
		for i := range 10 {
			follower.want(fmt.Sprintf("INSERTED %d\n", i+2))
		}
	})
}

// A client that sends nothing more, or quits, gets its last replies through another member, too.
func TestRelayEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		c.elect(1)
		half := c.members[1].dial()
		half.send("put 0 0 60 1\nx\n")
		half.halfClose()
		half.want("INSERTED 1\n")
		half.wantEnd()
		quits := c.members[1].dial()
		quits.send("put 0 0 60 1\nx\nquit\n")
		quits.want("INSERTED 2\n")
		quits.wantEnd()
		waits := c.members[1].dial()
		waits.send("watch none\nignore default\nreserve\n")
		waits.want("WATCHING 2\nWATCHING 1\n")
		waits.halfClose()
		waits.want("TIMED_OUT\n")
		waits.wantEnd()
		time.Sleep(time.Minute)
		for _, r := range c.members {
			r.wantConns(0)
		}
	})
}

// When another member leads, the connections of all clients have ended when Follow returns.
func TestLeadershipEndsConnections(t *testing.T) {
	c := startCrew(t, 2, Options{})
	c.elect(1)
	var clients []*client
	for _, r := range c.members {
		clients = append(clients, r.dial(), r.dialTCP())
	}
	for i, client := range clients {
		client.do("put 0 0 60 1\nx\n", fmt.Sprintf("INSERTED %d\n", i+1))
	}
	clients[1].send("watch none\nignore default\nreserve\n")
	clients[1].want("WATCHING 2\nWATCHING 1\n")
	c.elect(2)
	if st := c.members[0].stats(); st.Sessions != 0 {
		t.Errorf("the old leader's engine has %d sessions", st.Sessions)
	}
	for _, client := range clients {
		client.wantEnd()
	}
	for _, r := range c.members {
		again := r.dial()
		again.do("stats-job 1\n", "NOT_FOUND\n")
		again.nc.Close()
	}
}

// The same leader in another term has another engine, perhaps.
func TestSameLeaderAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		c.elect(1)
		client := c.members[1].dial()
		client.do("use x\n", "USING x\n")
		c.elect(0)
		client.wantEnd()
		c.elect(1)
		c.members[1].dial().do("list-tube-used\n", "USING default\n")
	})
}

// What a client sends while there is no leader is executed when there is one.
func TestLobby(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		for _, r := range c.members {
			producer, worker := r.dial(), r.dial()
			producer.send("use mail\nput 0 0 60 5\nhello\n")
			worker.send("watch mail\nreserve\n")
			time.Sleep(5 * time.Second)
			c.elect(1)
			producer.want("USING mail\nINSERTED ")
			producer.line("")
			worker.want("WATCHING 2\nRESERVED ")
			producer.nc.Close()
			worker.nc.Close()
			c.elect(0)
		}
	})
}

// A leader that drops packets holds up no client for longer than none at all, and not when there is another one.
func TestLobbyOfSilentLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 3, Options{})
		c.silent.Store(1)
		c.elect(1)
		client := c.members[1].dial()
		client.do("put 0 0 60 1\na\n", "INTERNAL_ERROR\n")
		client.send("put 0 0 60 1\nb\n")
		synctest.Wait()
		c.elect(3)
		client.want("INSERTED 1\n")
	})
}

func TestLobbyWithoutLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{MaxJobSize: 100_000})
		for i, r := range c.members {
			client := r.dial()
			if got := client.stat("cluster-member"); got != strconv.Itoa(i+1) {
				t.Errorf("stats of member %d are those of %s", i+1, got)
			}
			r.Follow(Leadership{Leader: 3, Term: uint64(2*i + 1)}) // nobody knows 3
			r.Follow(Leadership{Term: uint64(2*i + 2)})
			for _, want := range []time.Duration{DefaultPatience, 0} { // when no leader was known for that long, a command does not wait
				began := time.Now()
				client.do("put 0 0 60 5\nhello\ndelete 1\n", "INTERNAL_ERROR\nINTERNAL_ERROR\n")
				if waited := time.Since(began); waited != want {
					t.Errorf("a put and a delete have waited for %v, want %v", waited, want)
				}
			}
			began := time.Now()
			client.do("reserve-with-timeout 3\n", "TIMED_OUT\n")
			if waited := time.Since(began); waited != 3*time.Second {
				t.Errorf("a reserve has waited for %v", waited)
			}
			client.send("reserve\n")
			time.Sleep(time.Hour)
			client.nc.Close()
			quits := r.dial()
			quits.send("quit\n")
			quits.wantEnd()
			long := r.dial()
			long.send("put 0 0 60 65535\n")
			go io.WriteString(long.nc, crlf.Replace(strings.Repeat("x", 65535)+"\n"))
			long.want("INTERNAL_ERROR\n")
			long.nc.Close()
			synctest.Wait()
			r.wantConns(0)
		}
	})
}

// A command that is longer than what is kept waits like any other, and the next one after it is understood.
func TestLobbyOfLargeJobs(t *testing.T) {
	const whole, tooBig = 99_999, 200_000
	large := func(size int) string {
		return fmt.Sprintf("put 0 0 60 %d\n%s\n", size, strings.Repeat("x", size))
	}
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{MaxJobSize: 100_000})
		for _, size := range []int{whole, tooBig} {
			c.elect(1)
			c.elect(0) // just now
			client := c.members[1].dial()
			go io.WriteString(client.nc, crlf.Replace(large(size)+"reserve-with-timeout 0\n"))
			began := time.Now()
			client.want("INTERNAL_ERROR\n")
			if waited := time.Since(began); waited != DefaultPatience {
				t.Errorf("a put of %d bytes has waited for %v", size, waited)
			}
			client.want("TIMED_OUT\n")
			client.nc.Close()

			// Half of it arrives when there is a leader: it is answered by whoever has the other half.
			slow := c.members[1].dial()
			text := crlf.Replace(large(size))
			half := len(text) - 10
			go io.WriteString(slow.nc, text[:half])
			time.Sleep(DefaultPatience + time.Second)
			c.elect(1)
			synctest.Wait()
			go io.WriteString(slow.nc, text[half:]+crlf.Replace("use mail\n"))
			slow.want("INTERNAL_ERROR\nUSING mail\n")
			slow.nc.Close()
			c.elect(0)

			// The client does not go on.
			stalls := c.members[1].dial()
			go io.WriteString(stalls.nc, text[:half])
			stalls.wantEnd()
		}
		c.elect(1)
		c.elect(0)
		early := c.members[1].dial()
		go io.WriteString(early.nc, crlf.Replace(large(whole)+large(tooBig)))
		time.Sleep(time.Second)
		c.elect(1)
		early.want("INSERTED 1\nJOB_TOO_BIG\n")
		early.nc.Close()
	})
}

// A leader that this member cannot reach is none for its clients.
func TestLeaderOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		c.elect(1)
		c.down.Store(true)
		client := c.members[1].dial()
		client.do("put 0 0 60 5\nhello\n", "INTERNAL_ERROR\n")
		client.send("put 0 0 60 5\nhello\n")
		c.down.Store(false)
		client.want("INSERTED 1\n")
	})
}

// A server that stops lets the clients go that wait, and those that are served elsewhere.
func TestShutdownOfMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		waits := c.members[0].dial()
		waits.send("reserve\n")
		synctest.Wait()
		if err := c.members[0].Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		waits.wantEnd()
	})
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 2, Options{})
		c.elect(1)
		client := c.members[1].dial()
		client.do("put 0 0 60 5\nhello\n", "INSERTED 1\n")
		client.send("reserve-with-timeout 100\nput 0 0 60 1\nx\n")
		client.want("RESERVED 1 5\nhello\nINSERTED 2\n")
		if err := c.members[1].Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		client.wantEnd()
	})
}

// A lateListener's connections set their first deadline when somebody else has let their reads end.
type lateListener struct {
	*memnet.Listener
	begun, woken chan struct{}
	first, wake  sync.Once
}

func (l *lateListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return lateConn{c, l}, err
}

type lateConn struct {
	net.Conn
	l *lateListener
}

func (c lateConn) SetReadDeadline(at time.Time) error {
	if at.Equal(time.Unix(1, 0)) {
		defer c.l.wake.Do(func() { close(c.l.woken) })
	} else {
		c.l.first.Do(func() {
			close(c.l.begun)
			<-c.l.woken
		})
	}
	return c.Conn.SetReadDeadline(at)
}

// A client that begins to wait for a leader while the server stops does not go on waiting.
func TestShutdownOfNewcomer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 1, Options{})
		l := &lateListener{Listener: memnet.Listen(), begun: make(chan struct{}), woken: make(chan struct{})}
		c.members[0].serve(l)
		nc, err := l.Dial()
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(t, nc)
		<-l.begun
		if err := c.members[0].Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		client.wantEnd()
	})
}

// call connects a client of member 2 to member 1, with whatever that says of it.
func call(t *testing.T, r *rig, hello []byte) *client {
	t.Helper()
	own, other := memnet.Pipe()
	go r.ServeVisitor(2, other)
	c := newClient(t, own)
	if _, err := own.Write(hello); err != nil {
		t.Fatal(err)
	}
	return c
}

func describe(t *testing.T, v visitor) []byte {
	t.Helper()
	hello, err := v.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return hello
}

// The leader forgets the address of a client of another member when its last client has gone, not before.
func TestVisitorsAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 1, Options{})
		c.elect(1)
		hello := describe(t, visitor{Member: 2, Address: "192.0.2.7:99"})
		first, second := call(t, c.members[0], hello), call(t, c.members[0], hello)
		first.do("use x\n", "USING x\n")
		second.do("use x\n", "USING x\n")
		limiter := func() *access.Limiter { return c.members[0].access.LimiterOf(nil, netip.MustParseAddr("192.0.2.7")) }
		its := limiter()
		first.nc.Close()
		synctest.Wait()
		if limiter() != its {
			t.Error("it is forgotten while a client is there")
		}
		second.nc.Close()
		synctest.Wait()
		if limiter() == its {
			t.Error("it is not forgotten")
		}
	})
}

// The leader decides what a client of another member may do, by the name of its identity.
func TestVisitorsRights(t *testing.T) {
	bubble(t, func(t *testing.T) {
		token := access.NewToken()
		hash, err := access.HashOf(token)
		if err != nil {
			t.Fatal(err)
		}
		control := controlOf(t, access.Config{
			Identities: []access.IdentityConfig{{Name: "mail", Tokens: []access.Hash{hash}}},
			Rules:      []access.RuleConfig{{Identities: []string{"mail"}, Tubes: []string{"mail"}, Rights: rights.All}},
		})
		c := startCrew(t, 1, Options{Access: control})
		c.elect(1)
		known := call(t, c.members[0], describe(t, visitor{Member: 2, Identity: "mail", Address: "192.0.2.7:99", Required: true}))
		known.do("use mail\nput 0 0 60 1\nx\n", "USING mail\nINSERTED 1\n")
		known.do("use other\n", "UNAUTHORIZED\n")
		says := call(t, c.members[0], describe(t, visitor{Member: 2, Required: true}))
		says.do("auth "+string(token)+"\nuse mail\nput 0 0 60 1\nx\n", "AUTHENTICATED\nUSING mail\nINSERTED 2\n")
		stranger := call(t, c.members[0], describe(t, visitor{Member: 2, Required: true}))
		stranger.do("stats\n", "UNAUTHORIZED\n")
		stranger.wantEnd()
		unknown := call(t, c.members[0], describe(t, visitor{Member: 2, Identity: "nobody"}))
		unknown.wantEnd()
		synctest.Wait()
	})
}

func TestHostileVisitors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startCrew(t, 1, Options{})
		c.elect(1)
		for name, hello := range map[string][]byte{
			"too long":           binary.BigEndian.AppendUint16(nil, maxVisitor+1),
			"not JSON":           append(binary.BigEndian.AppendUint16(nil, 3), "abc"...),
			"of another member":  describe(t, visitor{Member: 3}),
			"of a strange place": describe(t, visitor{Member: 2, Address: "somewhere"}),
			"nothing":            nil,
		} {
			t.Log(name)
			call(t, c.members[0], hello).wantEnd()
		}
	})
}

func FuzzVisitor(f *testing.F) {
	hello, err := visitor{Member: 2, Address: "192.0.2.7:99", Identity: "mail"}.append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello)
	f.Add([]byte{0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, input []byte) {
		v, err := readVisitor(bytes.NewReader(input))
		if err != nil {
			return
		}
		v.addr()
		if _, err := v.append(nil); err != nil && len(input) < maxVisitor/8 {
			t.Fatal(err)
		}
	})
}
