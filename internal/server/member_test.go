package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A group contains the members of a cluster, with ids from 1. Each member has its own
// queue, and only the leader's queue is used.
type group struct {
	members []*rig
	down    atomic.Bool // no member can be reached
	term    uint64
	leader  uint64
	cut     func(leader uint64) // ends the connections to a leader, as its death would
	heard   []uint64
}

// startMembers starts n members without a leader.
func startMembers(t *testing.T, n int, opt Options) *group {
	t.Helper()
	c := &group{}
	for i := range n {
		id := uint64(i + 1)
		o := opt
		o.Cluster = &Cluster{
			ID: id,
			Dial: func(leader uint64) (MemberStream, error) {
				if c.down.Load() || leader > uint64(len(c.members)) {
					return nil, errors.New("unreachable")
				}
				return c.open(t, id, leader), nil
			},
			Stats: func(asked uint64) []wire.Stat {
				return []wire.Stat{{Key: "cluster-member", Value: strconv.FormatUint(asked, 10)}}
			},
		}
		r := start(t, o)
		if nc, err := r.pipe(); err == nil { // starts serving in memory
			nc.Close()
		}
		c.members = append(c.members, r)
	}
	return c
}

// link connects two members.
func (c *group) link(t *testing.T, from, to uint64) *mux.Session {
	a, b := memnet.Pipe()
	own := mux.New(a, nil)
	other := mux.New(b, func(s *mux.Stream) { go c.members[to-1].ServeProxied(from, s) })
	t.Cleanup(func() { own.Close(); other.Close() })
	return own
}

// open opens a stream between two members.
func (c *group) open(t *testing.T, from, to uint64) *mux.Stream {
	t.Helper()
	stream, err := c.link(t, from, to).Open()
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// elect makes a member the leader. 0 means that there is no leader.
func (c *group) elect(leader uint64) {
	c.term++
	for i, r := range c.members {
		if uint64(i+1) != leader { // first, so that the old leader's clients are disconnected before the new leader serves
			r.Follow(Leadership{Leader: leader, Term: c.term})
		}
	}
	if leader != 0 {
		c.members[leader-1].Follow(Leadership{Leader: leader, Term: c.term, Epoch: 1})
	}
}

// The server does not read a client's commands while there is no leader. It executes them
// when there is one.
func TestPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startMembers(t, 2, Options{})
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

// A pending client is disconnected after the leader timeout, or when it hangs up. If
// there has been no leader for that time already, a new client is disconnected at once.
// An unreachable leader counts as no leader.
func TestPatience(t *testing.T) {
	for name, leader := range map[string]func(*group){
		"none": func(c *group) {
			c.elect(1)
			c.elect(0) // the leader has only just gone
		},
		"out of reach": func(c *group) {
			c.down.Store(true)
			c.elect(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := startMembers(t, 3, Options{})
				leader(c)
				r := c.members[1]
				for i := range 3 {
					began, client := time.Now(), r.dial()
					if i != 2 || name == "none" {
						io.WriteString(client.nc, "put 0 0 60 1\r\nx\r\n") // the server might have closed it
						client.wantEnd()
						want := leaderTimeout
						if i > 0 && name == "none" {
							want = 0
						}
						if waited := time.Since(began); waited < want || waited > want {
							t.Errorf("a client waited %v, want %v", waited, want)
						}
						continue
					}
					client.send("put 0 0 60 1\nx\n")
					leaves := r.dial()
					leaves.nc.Close()
					time.Sleep(leaderRetry)
					r.wantConns(1)
					c.elect(3) // first, because member 1 disconnects its clients when it stops leading
					c.down.Store(false)
					client.want("INSERTED 1\n")
				}
			})
		})
	}
}

// A leader that accepts a client's stream and sends nothing keeps the client as long as
// it leads, because a reserve can wait for that long. The leader is notified if the
// client disconnects.
func TestSilentLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startMembers(t, 3, Options{})
		synctest.Wait() // until the member's first client has disconnected
		streams := make(chan *mux.Stream, 3)
		c.elect(1)
		synctest.Wait()
		a, b := memnet.Pipe()
		own, other := mux.New(a, nil), mux.New(b, func(s *mux.Stream) { streams <- s })
		defer own.Close()
		defer other.Close()
		c.members[1].opt.Cluster.Dial = func(uint64) (MemberStream, error) { return own.Open() }
		leaves := c.members[1].dial()
		leaves.send("reserve\n")
		synctest.Wait()
		waits := c.members[1].dial()
		waits.send("reserve\n")
		time.Sleep(2 * leaderTimeout) // in the test's fake time
		c.members[1].wantConns(2)
		leaves.nc.Close()
		stream := <-streams
		if sent, err := io.ReadAll(stream); err != nil || !bytes.HasSuffix(sent, []byte("reserve\r\n")) {
			t.Errorf("the leader read %q: %v", sent, err)
		}
		stream.Close()
		synctest.Wait()
		c.members[1].wantConns(1)
		c.elect(3)
		waits.wantEnd()
		(<-streams).Close()
		(<-streams).Close() // the stream announces the clients
	})
}

// A server that stops disconnects waiting clients and clients that it proxies.
func TestShutdownOfMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startMembers(t, 2, Options{})
		waits := c.members[0].dial()
		waits.send("reserve\n")
		synctest.Wait()
		if err := c.members[0].Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		waits.wantEnd()
	})
	bubble(t, func(t *testing.T) {
		c := startMembers(t, 2, Options{})
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

// call connects a client of member 2 to member 1, with a stream header.
func (c *group) call(t *testing.T, header []byte) *client {
	t.Helper()
	own := c.open(t, 2, 1)
	client := newClient(t, own)
	if _, err := own.Write(header); err != nil {
		t.Fatal(err)
	}
	return client
}

func describe(t *testing.T, v proxiedClient) []byte {
	t.Helper()
	header, err := streamHeader{proxiedClient: v}.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// The leader determines the rights of another member's client by the name of its
// identity.
func TestProxiedClientsRights(t *testing.T) {
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
		c := startMembers(t, 1, Options{Access: control})
		c.elect(1)
		known := c.call(t, describe(t, proxiedClient{Member: 2, Identity: "mail", Address: "192.0.2.7:99", Required: true}))
		known.do("use mail\nput 0 0 60 1\nx\n", "USING mail\nINSERTED 1\n")
		known.do("use other\n", "UNAUTHORIZED\n")
		says := c.call(t, describe(t, proxiedClient{Member: 2, Required: true}))
		says.do("auth "+string(token)+"\nuse mail\nput 0 0 60 1\nx\n", "AUTHENTICATED\nUSING mail\nINSERTED 2\n")
		stranger := c.call(t, describe(t, proxiedClient{Member: 2, Required: true}))
		stranger.do("stats\n", "UNAUTHORIZED\n")
		stranger.wantEnd()
		unknown := c.call(t, describe(t, proxiedClient{Member: 2, Identity: "nobody"}))
		unknown.wantEnd()
		synctest.Wait()
	})
}

func TestHostileProxies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startMembers(t, 1, Options{})
		c.elect(1)
		for name, header := range map[string][]byte{
			"too short":          binary.BigEndian.AppendUint16(nil, 9),
			"not JSON":           append(binary.BigEndian.AppendUint16(nil, 3), "abc"...),
			"of another member":  describe(t, proxiedClient{Member: 3}),
			"of a strange place": describe(t, proxiedClient{Member: 2, Address: "somewhere"}),
			"nothing":            nil,
		} {
			t.Log(name)
			c.call(t, header).wantEnd()
		}
	})
}

func FuzzProxied(f *testing.F) {
	header, err := streamHeader{proxiedClient: proxiedClient{Member: 2, Address: "192.0.2.7:99", Identity: "mail"}}.append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header)
	f.Add([]byte{0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, input []byte) {
		v, err := readProxied(bytes.NewReader(input))
		if err != nil {
			return
		}
		v.addr()
		if _, err := v.append(nil); err != nil && len(input) < maxProxyHeader/8 {
			t.Fatal(err)
		}
	})
}

// The size of the largest header fits in proxy.head.
func TestLargestDescription(t *testing.T) {
	v := streamHeader{proxiedClient: proxiedClient{Identity: strings.Repeat("a", 60<<10)}}
	for {
		header, err := v.append(nil)
		if err != nil {
			break
		}
		if len(header) > math.MaxUint16 {
			t.Fatalf("a header of %d bytes", len(header))
		}
		v.Identity += "a"
	}
}

// A client can be dismissed while a turn delays its resumption.
func TestDismissDuringResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		c.change(1)
		r := c.members[1]
		client := r.dial()
		client.do("use x\n", "USING x\n")
		synctest.Wait()
		all := r.mu.loops.all[0].clients.all
		s := all[slices.IndexFunc(all, func(s *socket) bool { return s != nil })]
		begun, over := make(chan struct{}), make(chan struct{})
		go r.broker.Call(func(*engine.Engine, int64) {
			close(begun)
			<-over
		})
		<-begun
		c.change(2)
		s.Dismiss(errDismissed)
		close(over)
		client.wantEnd()
	})
}

// The buffers of a pending client do not count after it was resumed.
func TestBuffersAfterResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		c.change(1)
		r := c.members[1]
		client := r.dial()
		client.do("use x\n", "USING x\n")
		c.members[0].Follow(Leadership{Term: c.term})
		synctest.Wait()
		client.send("put 0 0 9 9000\n" + strings.Repeat("x", 9000))
		synctest.Wait()
		if n := r.shared.Memory.Held(); n < 9000 {
			t.Errorf("%d bytes are held for the pending client", n)
		}
		c.change(2)
		client.do("\n", "INSERTED 10\n")
		synctest.Wait()
		if n := r.shared.Memory.Held(); n != 0 {
			t.Errorf("%d bytes are held for the resumed client", n)
		}
	})
}
