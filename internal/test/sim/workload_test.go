package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

var tubes = []string{"default", "mail", "images", "a-tube-with-a-longer-name-than-others"}

// A workload consists of sessions that perform random operations.
type workload struct {
	sessions []*engine.Session
	habits
}

type habits struct {
	largest int    // maximum length of most bodies; a few are longer
	many    uint64 // above this number of jobs, it deletes more than it puts
}

func newWorkload(e *engine.Engine, h habits) *workload {
	w := &workload{habits: h}
	for range 3 {
		w.sessions = append(w.sessions, e.Open(nil))
	}
	return w
}

// leave closes all sessions.
func (w *workload) leave(e *engine.Engine, now int64) {
	if w != nil {
		for _, s := range w.sessions {
			e.Close(now, s)
		}
		w.sessions = nil
	}
}

// swept contains the states in which jobs can be moved and cleared.
var swept = []engine.State{engine.Ready, engine.Delayed, engine.Buried}

// act performs a random operation and returns the reply. The operation depends only on
// rng and the engine's replies.
func (w *workload) act(rng *rand.Rand, e *engine.Engine, now int64) string {
	n := rng.IntN(len(w.sessions))
	s := w.sessions[n]
	tube := []byte(tubes[rng.IntN(len(tubes))])
	st := e.Stats()
	puts := 30
	if st.Ready+st.Delayed+st.Buried+st.Reserved > w.many {
		puts = 5
	}
	switch k := rng.IntN(70 + puts); {
	case k < 4:
		e.Use(s, tube)
		return s.Using()
	case k < 7:
		return fmt.Sprint(e.Watch(s, tube))
	case k < 9:
		return fmt.Sprint(e.Ignore(s, tube))
	case k < 10 && rng.IntN(3) == 0:
		every := []string{"", "every=\"1s\"\ntube=\"mail\"\nbody=\"{time}\"\n", "every=\"7s\"\nmissed=\"all\"\noverlap=\"skip\"\ntube=\"images\"\n"}[rng.IntN(3)]
		return fmt.Sprint("schedule ", e.SetSchedule([]string{"a", "b"}[rng.IntN(2)], every))
	case k < 10:
		return fmt.Sprint("policy ", e.SetPolicy(tubes[rng.IntN(len(tubes))]+"*", []string{"", "paused=no\n", "max-attempts=5\nretry-delay=5s\n"}[rng.IntN(3)]))
	case k < 12:
		return fmt.Sprint("pause ", e.Pause(now, tube, uint32(rng.IntN(3)*rng.IntN(40))))
	case k < 13:
		e.Close(now, s)
		w.sessions[n] = e.Open(nil)
		return "closed"
	case k < 28:
		j, o := e.Reserve(now, s, 0)
		if c, _ := e.Snapshot(j.ID); o == engine.OK {
			if p := e.PolicyOf(c.Tube); p != nil && p.TTL > 0 && now-c.Created >= p.TTL {
				panic(fmt.Sprintf("job %d is served, %d ns after its put", j.ID, now-c.Created))
			}
		}
		return fmt.Sprint("reserve ", j.ID, o)
	case k < 30:
		j, o := e.ReserveJob(now, s, w.anyJob(rng, e))
		return fmt.Sprint("reserve-job ", j.ID, o)
	case k < 36:
		return fmt.Sprint("bury ", e.Bury(s, w.anyJob(rng, e), rng.Uint32N(2000)))
	case k < 48:
		return fmt.Sprint("release ", e.Release(now, s, w.anyJob(rng, e), rng.Uint32N(2000), uint32(rng.IntN(2)*rng.IntN(30))))
	case k < 51:
		return fmt.Sprint("touch ", e.Touch(now, s, w.anyJob(rng, e)))
	case k < 53:
		return fmt.Sprint("kick ", e.Kick(now, s, rng.Uint32N(4)))
	case k < 55:
		return fmt.Sprint("kick-job ", e.KickJob(now, w.anyJob(rng, e)))
	case k < 56:
		w, o := e.BeginMove(tube, []byte(tubes[rng.IntN(len(tubes))]), swept[rng.IntN(len(swept))], 0)
		for e.ContinueSweep(now, &w) {
		}
		return fmt.Sprint("move ", w.Done, w.Refused, o)
	case k < 57 && rng.IntN(20) == 0:
		w, o := e.BeginClear(tube, swept[rng.IntN(len(swept))], 0)
		for e.ContinueSweep(now, &w) {
		}
		return fmt.Sprint("clear ", w.Done, w.Refused, o)
	case k < 70:
		return fmt.Sprint("delete ", e.Delete(s, w.anyJob(rng, e)))
	}
	if k := rng.IntN(20); k == 0 {
		id := w.anyJob(rng, e)
		body := w.body(rng, id)
		return fmt.Sprint("alter ", e.AlterJob(now, id, engine.Alteration{Body: &body}))
	}
	id, o := e.Put(now, s, w.spec(rng), w.body(rng, e.LastID()+1))
	return fmt.Sprint("put ", id, o)
}

// anyJob returns an id, usually of an existing job.
func (w *workload) anyJob(rng *rand.Rand, e *engine.Engine) uint64 {
	last := e.LastID()
	for range 20 {
		id := last - rng.Uint64N(min(last+1, 3*w.many))
		if _, o := e.Peek(id); o == engine.OK {
			return id
		}
	}
	return last
}

func (w *workload) spec(rng *rand.Rand) engine.Spec {
	spec := engine.Spec{Pri: rng.Uint32N(4) << rng.IntN(30), TTR: rng.Uint32N(100)}
	if rng.IntN(3) == 0 {
		spec.Delay = rng.Uint32N(40)
	}
	return spec
}

// body returns a body that identifies its job.
func (w *workload) body(rng *rand.Rand, id uint64) []byte {
	n := rng.IntN(w.largest + 1)
	if rng.IntN(20) == 0 {
		n *= 20
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(id) + byte(i)
	}
	if n >= 8 {
		binary.LittleEndian.PutUint64(b, id)
	}
	return b
}
