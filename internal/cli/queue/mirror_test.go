package queue

import (
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// A migration is a mirror between two servers.
type migration struct {
	*target
	source *beanpoletest.Server
	from   *client.Conn
}

func newMigration(t *testing.T) *migration {
	srv := beanpoletest.NewMemory(t)
	return &migration{newTarget(t), srv, dial(t, srv.Dial)}
}

// mirror returns a mirror of the jobs from an id on; 0: it lists them.
func (m *migration) mirror(to *client.Conn, from uint64) *mirror {
	return &mirror{session: newSession(""), from: m.from, to: to, scan: scan{from: from}, copies: make(map[uint64]jobCopy)}
}

func (m *migration) wantSame() {
	m.Helper()
	if got, want := jobs(m.T, m.look), jobs(m.T, m.from); !maps.Equal(got, want) {
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
		{Tube: "a", Priority: new(uint32(5)), Body: []byte("urgent")}, {Tube: "a", Delay: time.Hour, Body: []byte("late")},
		{Tube: "a", Delay: time.Hour, Body: []byte("later")}, {Tube: "b", Body: []byte("buried")}, {Tube: "b", Body: []byte("last")},
	})
	m.must(err)
	m.bury(ids[6], 9)
	return ids
}

func (m *migration) bury(id uint64, priority uint32) {
	m.Helper()
	j, err := m.from.ReserveJob(m.Context(), id)
	m.must(err)
	m.must(m.from.Bury(m.Context(), j.ID, priority))
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

// modes are how a mirror finds the jobs: by lists, or by ids.
var modes = map[string]uint64{"lists": 0, "ids": 1}

// A round makes the other server like the first.
func TestMirrorFollows(t *testing.T) {
	for name, from := range modes {
		t.Run(name, func(t *testing.T) {
			m := newMigration(t)
			ids := m.fill()
			mi := m.mirror(m.look, from)
			m.must(mi.round(t.Context()))
			m.wantSame()
			m.change(ids)
			m.must(mi.round(t.Context()))
			m.wantSame()
		})
	}
}

// Wherever a mirror by ids breaks: run again from the id that it names, the other server
// has each job at least once.
func TestMirrorBreaks(t *testing.T) {
	const step = 5
	for _, changed := range []bool{false, true} {
		broken := true
		for cut := rand.N(step); broken; cut += step {
			m := newMigration(t)
			ids := m.fill()
			mi := m.mirror(m.cut(cut), 1)
			err := mi.round(t.Context())
			if changed && err == nil {
				m.change(ids)
				err = mi.round(t.Context())
			}
			broken = err != nil
			if broken {
				m.must(m.mirror(m.look, mi.next).round(t.Context()))
			}
			got, want := jobs(t, m.look), jobs(t, m.from)
			for kind, n := range want {
				// What has changed in a job before that id is not followed.
				if got[kind] < n && !(changed && broken) || total(got) < total(want) {
					t.Fatalf("cut at %d, changed: %v, went on at %d: the other server has %v, want %v", cut, changed, mi.next, got, want)
				}
			}
			m.source.Close()
			m.server.Close()
		}
	}
}

func total(jobs map[string]int) (n int) {
	for _, of := range jobs {
		n += of
	}
	return n
}

// A delay that is changed is changed in the copy too; one that only runs down is not.
func TestMirrorDelay(t *testing.T) {
	for name, from := range modes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMigration(t)
				mi := m.mirror(m.look, from)
				ctx := t.Context()
				ids, err := m.from.PutMany(ctx, []client.NewJob{
					{Tube: "a", Delay: time.Hour, Body: []byte("later")}, {Tube: "a", Delay: time.Hour, Body: []byte("sooner")},
					{Tube: "a", Delay: time.Hour, Body: []byte("same")}, {Tube: "a", Body: []byte("ready")},
				})
				m.must(err)
				m.must(mi.round(ctx))
				before := m.delays()
				for _, pause := range []time.Duration{100 * time.Millisecond, 950 * time.Millisecond, 17 * time.Minute} {
					time.Sleep(pause)
					m.must(mi.round(ctx))
				}
				for body, after := range m.delays() {
					if after.id != before[body].id {
						t.Errorf("the copy of %s was made again while its delay ran down", body)
					}
				}
				for i, delay := range []time.Duration{2 * time.Hour, 10 * time.Second} {
					j, err := m.from.ReserveJob(ctx, ids[i])
					m.must(err)
					m.must(j.Release(ctx, delay))
				}
				m.must(mi.round(ctx))
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
	m.must(eachJob(m.T, m.look, scan{states: []client.State{client.StateDelayed}}, func(f *found) {
		jobs[string(f.body)] = delayed{f.ID, seconds(f.TimeLeft)}
	}))
	return jobs
}
