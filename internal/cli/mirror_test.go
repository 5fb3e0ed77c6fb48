package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// A cutConn breaks after some bytes were sent, of which the last ones may be a part
// of a command. What came before is executed; its replies are lost.
type cutConn struct {
	net.Conn
	left *int
}

func (c *cutConn) Write(b []byte) (int, error) {
	if len(b) <= *c.left {
		*c.left -= len(b)
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:*c.left])
	*c.left = 0
	// The server executes what it has before it sees the end.
	c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	io.Copy(io.Discard, c.Conn)
	c.Close()
	return n, io.ErrClosedPipe
}

// A migration is a mirror between two servers, of which each run may break.
type migration struct {
	*testing.T
	source, target *beanpoletest.Server
	from, look     *client.Conn
	file           string
	last           uint64 // the ids to ask for; 0: the jobs are listed
}

func newMigration(t *testing.T) *migration {
	m := &migration{T: t, source: beanpoletest.NewMemory(t), target: beanpoletest.NewMemory(t), file: filepath.Join(t.TempDir(), "progress")}
	m.from = m.dial(m.source.Dial)
	m.look = m.dial(m.target.Dial)
	return m
}

func (m *migration) dial(dial func(context.Context, string, string) (net.Conn, error)) *client.Conn {
	m.Helper()
	c, err := client.Dial(m.Context(), "memory", &client.Options{Dial: dial, Reconnect: client.Never})
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { c.Close() })
	return c
}

// run mirrors until the connection to the target breaks, after so many bytes.
func (m *migration) run(bytesLeft int) error {
	to := m.dial(func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := m.target.Dial(ctx, network, addr)
		return &cutConn{nc, &bytesLeft}, err
	})
	s := &session{out: bufio.NewWriter(new(bytes.Buffer)), err: io.Discard}
	mi := &mirror{session: s, from: m.from, to: to, scan: scan{to: m.last}}
	if err := mi.resume(m.Context(), m.file); err != nil {
		return err
	}
	// As a kill does: nothing is noted after an error.
	return errors.Join(mi.run(m.Context(), false, 0), mi.log.file.Close())
}

// jobs returns how many jobs of each kind a server has.
func (m *migration) jobs(c *client.Conn) map[string]int {
	m.Helper()
	jobs := map[string]int{}
	sc := scan{bodies: true}
	err := sc.run(m.Context(), c, func(found []found) (bool, error) {
		for i := range found {
			j := found[i].exported()
			jobs[j.Tube+" "+j.State+" "+strconv.Itoa(int(j.Priority))+" "+string(j.Bytes())]++
		}
		return true, nil
	})
	if err != nil {
		m.Fatal(err)
	}
	return jobs
}

func (m *migration) wantSame() {
	m.Helper()
	if got, want := m.jobs(m.look), m.jobs(m.from); !maps.Equal(got, want) {
		m.Fatalf("the other server has %v, want %v", got, want)
	}
}

func (m *migration) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// fill puts jobs of all states at the source.
func (m *migration) fill() (ids []uint64) {
	m.Helper()
	ctx := m.Context()
	ids, err := m.from.PutMany(ctx, []client.NewJob{
		{Tube: "a", Body: []byte("same")}, {Tube: "a", Body: []byte("same")}, {Tube: "b", Body: []byte("same")},
		{Tube: "a", Priority: 5, Body: []byte("urgent")}, {Tube: "a", Delay: time.Hour, Body: []byte("late")},
		{Tube: "a", Delay: time.Hour, Body: []byte("later")}, {Tube: "b", Body: []byte("buried")}, {Tube: "b", Body: []byte("last")},
	})
	m.must(err)
	m.bury(ids[6], 9)
	return ids
}

func (m *migration) bury(id uint64, priority client.Priority) {
	m.Helper()
	j, err := m.from.ReserveJob(m.Context(), id)
	m.must(err)
	m.must(j.Bury(m.Context(), priority))
}

// change changes jobs of all states, in each way.
func (m *migration) change(ids []uint64) {
	m.Helper()
	ctx := m.Context()
	m.must(m.from.Delete(ctx, ids[0]))
	m.bury(ids[1], 3)
	m.must(m.from.KickJob(ctx, ids[4]))
	m.must(m.from.KickJob(ctx, ids[6]))
	_, err := m.from.MoveJobs(ctx, client.Selection{Tube: "b", State: client.StateReady, Limit: 1}, "c")
	m.must(err)
	_, err = m.from.PutMany(ctx, []client.NewJob{{Tube: "a", Body: []byte("same")}, {Tube: "d", Body: []byte("new")}})
	m.must(err)
}

// Wherever it breaks, and it may break in two runs one after the other: run again, each
// job has one copy.
func TestMirrorBreaks(t *testing.T) {
	const step = 5 // every byte takes long, for each run syncs its file some times
	for _, changed := range []bool{false, true} {
		broken := true
		for cut := rand.N(step); broken; cut += step {
			m := newMigration(t)
			ids := m.fill()
			if changed {
				m.must(m.run(1 << 30))
				m.wantSame()
				m.change(ids)
			}
			broken = m.run(cut) != nil
			m.run(cut / 2)
			if cut%2 == 0 && changed {
				m.from.Delete(m.Context(), ids[3])
			}
			m.Logf("cut at %d, changed: %v", cut, changed)
			m.must(m.run(1 << 30))
			m.wantSame()
			m.source.Close()
			m.target.Close()
		}
	}
}

// A line that was torn is not there; anything else that is no line is an error.
func TestLoadMirror(t *testing.T) {
	m := newMigration(t)
	m.fill()
	m.must(m.run(1 << 30))
	head := mirrorHead{From: "memory", To: "memory"}
	st, err := loadMirror(m.file, head)
	if err != nil || len(st.copies) != 8 || st.batch != nil || len(st.redo) != 0 || !st.known {
		t.Fatalf("%+v, %v", st, err)
	}
	for id, c := range st.copies {
		if c.id == 0 || c.tube == "" || c.state == "" || !slices.Contains([]uint32{1024, 5, 9}, c.pri) {
			t.Errorf("%d: %+v", id, c)
		}
	}
	if _, err := loadMirror(m.file, mirrorHead{From: "memory", To: "other"}); err == nil {
		t.Error("it is of another mirror")
	}
}

// A server that has restarted without its jobs has other jobs with the same ids.
func TestMirrorLostJobs(t *testing.T) {
	for _, source := range []bool{true, false} {
		m := newMigration(t)
		m.fill()
		m.must(m.run(1 << 30))
		if source {
			m.source = beanpoletest.NewMemory(t)
			m.from = m.dial(m.source.Dial)
		} else {
			m.target = beanpoletest.NewMemory(t)
			m.look = m.dial(m.target.Dial)
		}
		if err := m.run(1 << 30); err == nil {
			t.Errorf("it goes on (source: %v)", source)
		}
		if source {
			continue
		}
		if jobs := m.jobs(m.look); len(jobs) > 0 {
			t.Errorf("it has put %v", jobs)
		}
	}
}

// A delay that is changed is changed in the copy too, also by a later run; one that only
// runs down is not.
func TestMirrorDelay(t *testing.T) {
	for name, plain := range map[string]bool{"lists": false, "ids": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMigration(t)
				if plain {
					m.last = 1000 // asks for each id
				}
				ctx := t.Context()
				ids, err := m.from.PutMany(ctx, []client.NewJob{
					{Tube: "a", Delay: time.Hour, Body: []byte("later")}, {Tube: "a", Delay: time.Hour, Body: []byte("sooner")},
					{Tube: "a", Delay: time.Hour, Body: []byte("same")}, {Tube: "a", Body: []byte("ready")},
				})
				m.must(err)
				m.must(m.run(1 << 30))
				before := m.delays()
				for _, pause := range []time.Duration{100 * time.Millisecond, 950 * time.Millisecond, 17 * time.Minute} {
					time.Sleep(pause)
					m.must(m.run(1 << 30))
				}
				for body, after := range m.delays() {
					if after.id != before[body].id {
						t.Errorf("the copy of %s was made again while its delay ran down", body)
					}
				}
				for i, delay := range []time.Duration{2 * time.Hour, 10 * time.Second} {
					j, err := m.from.ReserveJob(ctx, ids[i])
					m.must(err)
					m.must(j.Release(ctx, 0, delay))
				}
				m.must(m.run(1 << 30))
				got := m.delays()
				for body, want := range map[string]time.Duration{"later": 2 * time.Hour, "sooner": 10 * time.Second, "same": 43*time.Minute - 2*time.Second} {
					if left := time.Duration(got[body].left) * time.Second; left > want || left < want-2*time.Second {
						t.Errorf("the copy of %s is ready in %s, want %s", body, left, want)
					}
				}
				if got["same"].id != before["same"].id {
					t.Error("the copy whose delay had not changed was made again")
				}
			})
		})
	}
}

// A delayed is a job of the other server, and in how many seconds it is ready.
type delayed struct {
	id   uint64
	left int64
}

// delays returns the delayed jobs of the other server by their bodies.
func (m *migration) delays() map[string]delayed {
	m.Helper()
	jobs := map[string]delayed{}
	sc := scan{bodies: true, states: []client.State{client.StateDelayed}}
	m.must(sc.run(m.Context(), m.look, func(found []found) (bool, error) {
		for i := range found {
			jobs[string(found[i].body)] = delayed{found[i].ID, seconds(found[i].TimeLeft)}
		}
		return true, nil
	}))
	return jobs
}
