package server

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// startResumable starts three connected members of a cluster. The queue of each has the
// jobs 1 to 9, with bodies of one byte and a TTR of 60 s.
func startResumable(t *testing.T) *group {
	t.Helper()
	c := &group{}
	sessions := map[[2]uint64]*mux.Session{}
	c.cut = func(leader uint64) {
		for _, from := range []uint64{1, 2, 3} {
			sessions[[2]uint64{from, leader}].Close()
		}
	}
	for i := range 3 {
		id := uint64(i + 1)
		r := startEngine(t, Options{Cluster: &Cluster{
			ID:    id,
			Dial:  func(leader uint64) (MemberStream, error) { return sessions[[2]uint64{id, leader}].Open() },
			Heard: func() (heard []uint64) { return c.heard },
		}}, broker.Options{}, engine.Options{Claims: true})
		if nc, err := r.pipe(); err == nil {
			nc.Close()
		}
		r.broker.Call(func(e *engine.Engine, now int64) {
			for job := range 9 {
				e.Restore(engine.Change{Kind: engine.JobPut, ID: uint64(job + 1), Tube: "default", TTR: 60, State: engine.Ready, Body: []byte("x"), Pri: uint32(job)})
			}
		})
		c.members = append(c.members, r)
	}
	for _, from := range []uint64{1, 2, 3} {
		for _, to := range []uint64{1, 2, 3} {
			sessions[[2]uint64{from, to}] = c.link(t, from, to)
		}
	}
	return c
}

// change makes a member the leader, like a transfer. The old leader's queue loses its
// sessions.
func (c *group) change(leader uint64) {
	if c.leader != 0 {
		old := c.members[c.leader-1]
		old.Follow(Leadership{Term: c.term})
		old.broker.Call(func(e *engine.Engine, now int64) { e.DropSessions(now) })
		synctest.Wait()
	}
	c.term++
	c.heard, c.leader = nil, leader
	for i, r := range c.members {
		if id := uint64(i + 1); id != leader {
			c.heard = append(c.heard, id)
			r.Follow(Leadership{Leader: leader, Term: c.term})
		}
	}
	c.members[leader-1].Follow(Leadership{Leader: leader, Term: c.term, Epoch: 1})
	synctest.Wait()
}

// Clients of all members keep their connections, jobs, tubes and waits through one or
// several changes of leader. Input that the old leader has not used goes to the next
// leader.
func TestResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		c.change(1)
		var holds, waits, idle []*client
		for i, r := range c.members {
			h, w, d := r.dial(), r.dial(), r.dial()
			h.do("reserve\n", "RESERVED "+string('1'+byte(i))+" 1\nx\n")
			w.send("watch b\nwatch a\nignore default\nwant tube\nreserve\n")
			w.want("WATCHING 2\nWATCHING 3\nWATCHING 2\nOK\n")
			d.do("use mail\n", "USING mail\n")
			d.send("reserve-with-timeout 100")
			holds, waits, idle = append(holds, h), append(waits, w), append(idle, d)
		}
		time.Sleep(10 * time.Second)
		for _, leader := range []uint64{2, 3, 3, 1, 2} {
			c.change(leader)
			time.Sleep(time.Second)
		}
		for i, h := range holds {
			h.do("touch "+string('1'+byte(i))+"\n", "TOUCHED\n")
			h.do("release 4 0 0\n", "NOT_FOUND\n")
		}
		c.change(1)
		for i := range holds {
			holds[i].do("delete "+string('1'+byte(i))+"\n", "DELETED\n")
			holds[i].do("use a\nput 0 0 60 1\ny\n", "USING a\n")
			holds[i].line("INSERTED")
		}
		for i := range holds {
			if line := waits[i].line(""); !strings.HasSuffix(line, " 1 tube=a") {
				t.Errorf("the reserve of %d returned %q", i, line)
			}
			waits[i].send("list-tubes-watched\n")
			waits[i].line("- a")
			waits[i].line("- b")
			idle[i].send("\nlist-tube-used\n")
			idle[i].want("RESERVED ")
			idle[i].line("")
		}
	})
}

// If the leader dies, only clients with a command in progress are disconnected.
func TestResumeAfterDeath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		c.change(1)
		dial := c.members[2].dial
		holds, waits, fresh, pipelines, writes := dial(), dial(), dial(), dial(), dial()
		holds.do("reserve\n", "RESERVED 1 1\nx\n")
		waits.send("watch mail\nignore default\nreserve\n")
		waits.want("WATCHING 2\nWATCHING 1\n")
		pipelines.send("watch mail\nignore default\nreserve\nlist-tube-used\n")
		pipelines.want("WATCHING 2\nWATCHING 1\n")
		writes.send("put 0 0 60 5\nhe")
		time.Sleep(time.Second)
		c.cut(1)
		pipelines.wantEnd()
		writes.wantEnd()
		fresh.send("use mail\nput 0 0 60 1\ny\n") // the next leader is the first to get this
		synctest.Wait()
		c.leader = 0
		c.change(2)
		fresh.do("", "USING mail\nINSERTED ")
		waits.want("RESERVED ")
		holds.do("reserve-job 1\ndelete 1\n", "NOT_FOUND\nDELETED\n")
	})
}

// A member that loses contact with its leader for a short time keeps the streams to the
// leader, even those with commands in progress.
func TestMissedLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		c.change(1)
		m := c.members[2]
		writes, holds := m.dial(), m.dial()
		writes.send("put 0 0 60 5\nhe")
		holds.do("reserve\n", "RESERVED 1 1\nx\n")
		waits := c.members[0].dial()
		waits.send("reserve-job 1\nreserve\n")
		waits.want("NOT_FOUND\nRESERVED 2 1\nx\n")
		for _, missed := range []Leadership{{Term: c.term}, {Term: c.term + 1}} {
			m.Follow(missed)
			synctest.Wait()
		}
		m.Follow(Leadership{Leader: 1, Term: c.term})
		synctest.Wait()
		writes.do("llo\n", "INSERTED 10\n")
		holds.do("delete 1\n", "DELETED\n")

		// The member learns of the next leader before the last one ends its streams.
		holds.send("put 0 0 60 5\nhe")
		synctest.Wait()
		m.Follow(Leadership{Leader: 2, Term: c.term + 1})
		synctest.Wait()
		c.change(2)
		holds.do("llo\n", "INSERTED 10\n")
		holds.send("put 0 0 60 5\nhe")
		synctest.Wait()
		m.Follow(Leadership{Leader: 1, Term: c.term + 1})
		holds.wantEnd() // that leader does not end its stream
	})
}

// If the last leader's stream neither ends nor accounts for a command in progress, the
// client is disconnected after doubtTime, even if it was pending before.
func TestDoubt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := startResumable(t)
		m := c.members[2]
		client := m.dial()
		client.send("put 0 0 60 5\nhe")
		synctest.Wait()
		c.change(1)
		time.Sleep(leaderTimeout - doubtTime/2) // the client's leader timeout is almost over
		began := time.Now()
		m.Follow(Leadership{Leader: 3, Term: c.term + 1})
		synctest.Wait()
		m.Follow(Leadership{Leader: 3, Term: c.term + 1, Epoch: 1})
		client.wantEnd()
		if waited := time.Since(began); waited != doubtTime {
			t.Errorf("the client was disconnected after %v", waited)
		}
	})
}

// A leader starts executing commands when the other members have sent their clients, or
// after 300 ms. If two clients claim a job, the later reservation wins, even if its claim
// arrives last.
func TestClaimsBeforeService(t *testing.T) {
	for name, announces := range map[string]int{"all": 2, "one is missing": 3} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := startResumable(t)
				leader := c.members[0]
				send := func(to io.Writer, v streamHeader) {
					header, err := v.append(nil)
					if err != nil {
						t.Fatal(err)
					}
					to.Write(header)
				}
				c.term, c.heard = 7, []uint64{3}
				leader.Follow(Leadership{Leader: 1, Term: 7, Epoch: 1})
				other := leader.dial()
				other.send("reserve\n")
				var claims []*client
				for _, at := range []byte{5, 9, 7} {
					own := c.open(t, 3, 1)
					client := newClient(t, own)
					// The state contains the term 6, no flags, and a claim with the id,
					// one reserve, the age, and 30 s of TTR left.
					state := append([]byte{6, 0, 1, 1, 1, 0}, binary.AppendVarint(binary.AppendVarint(nil, int64(30*time.Second)), int64(at))...)
					send(own, streamHeader{proxiedClient: proxiedClient{Member: 3, Term: 7}, Resumes: true, State: state})
					claims = append(claims, client)
					if len(claims) == announces {
						break
					}
				}
				if announces > 2 {
					announces++
				}
				time.Sleep(100 * time.Millisecond)
				if st := leader.stats(); st.Reserved > 0 || st.Waiting > 0 {
					t.Errorf("a client is served: %+v", st)
				}
				own := c.open(t, 3, 1)
				send(own, streamHeader{proxiedClient: proxiedClient{Member: 3, Term: 7}, Announces: &announces})
				own.Close()
				began := time.Now()
				other.want("RESERVED 2 1\nx\n")
				if waited := time.Since(began); announces == 2 && waited > 0 || waited > gatherTime-100*time.Millisecond {
					t.Errorf("it waited %v", waited)
				}
				for i, client := range claims {
					want := "NOT_FOUND\n"
					if i == 1 {
						want = "TOUCHED\n"
					}
					client.do("touch 1\n", want)
				}
			})
		})
	}
}
