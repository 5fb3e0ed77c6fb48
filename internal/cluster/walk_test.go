package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// A single server's journal becomes a cluster's. Members that join it get what was in it before, also if they, or
// the others, are killed meanwhile.
func TestFromSingleServer(t *testing.T) {
	for _, kill := range []string{"", "joiner", "donor"} {
		t.Run(kill, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fromSingleServer(t, kill) })
		})
	}
}

func fromSingleServer(t *testing.T, kill string) {
	w := emptyWorld(t, 3)
	m := w.machine()
	w.single(m, 3000)
	w.must(Init(m.disk, dir, m.self()))
	m.boot()
	stop := w.load(2)
	joiner := w.machine()
	l := w.leader()
	w.must(l.Add(t.Context(), joiner.self()))
	w.must(Join(joiner.disk, dir, l.Group()))
	joiner.boot()
	if kill != "" {
		w.until("a walk is under way", joiner.member.isPartial)
		victim := joiner
		if kill == "donor" {
			victim = m
		}
		victim.kill(true)
		time.Sleep(time.Second)
		victim.boot()
	}
	w.until("the member is a voter", func() bool { return w.roleOf(joiner.id) == Voter })
	w.grow(3)
	time.Sleep(time.Second)
	stop()
	w.audit()
	if n := w.jobs(); n < 3000 {
		w.fatalf("there are %d jobs", n)
	}
	w.close()
}

// single lets a single server put some jobs on a machine's disk.
func (w *world) single(m *machine, jobs int) {
	w.t.Helper()
	j := journal.New(journal.Options{Epoch: time.Now().UnixNano()})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	_, err := j.Open(m.disk, dir, eng)
	w.must(err)
	b := broker.New(eng, broker.Options{Log: j})
	for i := range jobs {
		w.must(b.Call(func(e *engine.Engine, now int64) {
			id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60, Pri: 9}, fmt.Appendf(nil, "old job %d", i))
			w.ledger.puts[id] = true
		}))
	}
	w.must(b.Close())
}

func (w *world) jobs() (n int64) {
	w.leader().Broker().Look(func(e *engine.Engine, _ int64) {
		st := e.Stats()
		n = int64(st.Ready + st.Delayed)
	})
	return n
}
