package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// anyPolicies returns a random policy, or none, for each tube.
func anyPolicies(rng *rand.Rand) engine.Policies {
	all := make(map[string]*engine.Policy)
	for _, tube := range tubes {
		if rng.IntN(4) == 0 {
			continue
		}
		all[tube] = &engine.Policy{
			MaxAttempts: rng.Uint32N(4), MaxTimeouts: rng.Uint32N(3), MaxReleases: rng.Uint32N(3),
			Exhausted: engine.Exhausted(rng.IntN(3)), DeadTube: "{tube}.dead",
			RetryDelay: rng.Int64N(2) * int64(3*time.Second), RetryMax: int64(10 * time.Second), RetryFactor: 2, RetryOn: engine.Ends(rng.IntN(8)),
			TTL: rng.Int64N(2) * int64(1+rng.IntN(60)) * int64(time.Second), BuryAtTTL: rng.IntN(2) == 0, KeepBuried: rng.Int64N(2) * int64(time.Minute),
			Unique: []*engine.Key{nil, byLength}[rng.IntN(2)], UniqueWhile: engine.While(rng.IntN(3)), UniqueMode: engine.UniqueMode(rng.IntN(3)),
			MaxReserved: rng.Uint32N(4), Interval: rng.Int64N(2) * int64(50*time.Millisecond),
		}
	}
	return engine.PolicyFunc(func(tube string) *engine.Policy { return all[tube] })
}

// byLength makes jobs equal if the lengths of their bodies, divided by ten, are equal.
var byLength = &engine.Key{Name: "length", Of: func(_ *[]byte, body []byte) ([]byte, bool) { return []byte{byte(len(body) / 10)}, len(body) > 50 }}

// A onceWorker waits for jobs and records the jobs that it receives.
type onceWorker struct{ given *[]uint64 }

func (w onceWorker) WaitOver(job engine.Job, o engine.Outcome) {
	if o == engine.OK {
		*w.given = append(*w.given, job.ID)
	}
}

// A job with one attempt is served to one worker, after the reservation is durable. This
// holds for every end of the server, even if workers fail, the disk is full or the
// journal cannot be written.
func TestAtMostOnce(t *testing.T) {
	heard, worlds := 0, 0
	eachSeed(t, 6, func(t *testing.T, name string, seed uint64) {
		n := livesOnce(t, name, seed, 1)
		heard += n
		worlds++
	})
	if worlds >= 6 && heard < 20*worlds {
		t.Errorf("in %d worlds only %d jobs were served", worlds, heard)
	}
}

// livesOnce returns the number of served jobs, or -1 if a job was served twice. That is
// not a failure if more attempts are allowed.
func livesOnce(t *testing.T, name string, seed uint64, attempts uint32) (served int) {
	w := newWorld(t, name, seed, journal.Options{SegmentSize: 1024 << (seed % 4)})
	policy := &engine.Policy{MaxAttempts: attempts, Exhausted: engine.Exhausted(seed % 2), MaxReserved: uint32(seed % 5)}
	w.policies = engine.PolicyFunc(func(string) *engine.Policy { return policy })
	heard, twice := make(map[uint64]bool), false
	for range 6 {
		w.disk.SetLimit(0)
		w.mustBoot()
		w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(150))
		var given []uint64
		var sessions []*engine.Session
		for range 60 {
			var told []uint64 // jobs served so far; the broker's timer also serves workers
			err := w.broker.Call(func(e *engine.Engine, now int64) {
				w.check(e)
				for len(sessions) < 4 {
					sessions = append(sessions, e.Open(onceWorker{&given}))
				}
				for range 1 + w.rng.IntN(5) {
					w.actOnce(e, now, sessions, &given)
				}
				told, given = given, nil
			})
			if err == nil && !w.dark() {
				for _, id := range told {
					twice = twice || heard[id]
					if heard[id] && attempts == 1 {
						w.fatalf("job %d was served twice", id)
					}
					heard[id] = true
				}
			}
			if w.rest(); w.dark() {
				break
			}
			if w.rng.IntN(30) == 0 {
				w.disk.SetLimit(int64(w.rng.IntN(2)))
			}
		}
		switch {
		case w.dark() || w.rng.IntN(2) == 0:
			w.powerCut()
		case w.rng.IntN(2) == 0:
			w.disk.CutAt(0)
			w.kill()
		default:
			w.disk.CutAt(0)
			if err := w.stop(); err != nil && !errors.Is(err, memfs.ErrPowerCut) {
				w.fatalf("shutdown: %v", err)
			}
		}
	}
	if twice {
		return -1
	}
	return len(heard)
}

// actOnce performs a random action that kicks no job.
func (w *world) actOnce(e *engine.Engine, now int64, sessions []*engine.Session, given *[]uint64) {
	n := w.rng.IntN(len(sessions))
	s, id := sessions[n], e.LastID()-w.rng.Uint64N(min(e.LastID()+1, 20))
	switch w.rng.IntN(12) {
	case 0, 1, 2, 3:
		e.Put(now, s, engine.Spec{TTR: 1 + w.rng.Uint32N(3), Delay: w.rng.Uint32N(2)}, make([]byte, w.rng.IntN(200)))
	case 4, 5, 6:
		if e.SessionStats(now, s).Waiting {
			return
		}
		if job, o := e.Reserve(now, s, int64(w.rng.IntN(2))*engine.Forever); o == engine.OK {
			*given = append(*given, job.ID)
		}
	case 7:
		if e.SessionStats(now, s).Waiting {
			return
		}
		if job, o := e.ReserveJob(now, s, id); o == engine.OK {
			*given = append(*given, job.ID)
		}
	case 8:
		e.Release(now, s, id, 0, w.rng.Uint32N(2))
	case 9:
		e.Bury(s, id, 0)
	case 10:
		e.Delete(s, id)
	default:
		e.Close(now, s)
		sessions[n] = e.Open(onceWorker{given})
	}
}

// TestAtMostOncePlanted checks that livesOnce detects jobs that are served twice, with a
// policy that permits two attempts.
func TestAtMostOncePlanted(t *testing.T) {
	found := false
	eachSeed(t, 3, func(t *testing.T, name string, seed uint64) {
		found = found || livesOnce(t, name, seed, 2) < 0
	})
	if !found {
		t.Error("no job was served twice although two attempts are allowed")
	}
}

// If a job is reserved when its tube gets a policy with one attempt, no other worker gets
// the job after the reply to that change. This is true for every end of the server. A
// server that answers before the change is durable serves some jobs twice.
func TestAtMostOnceSetLate(t *testing.T) {
	for _, hasty := range []bool{false, true} {
		twice := 0
		eachSeed(t, 4, func(t *testing.T, name string, seed uint64) { twice += livesOnceLate(t, name, seed, hasty) })
		if (twice > 0) != hasty {
			t.Errorf("hasty %v: %d jobs were served twice", hasty, twice)
		}
	}
}

// livesOnceLate returns the number of jobs that were reserved before a change of the
// policy and again after a crash.
func livesOnceLate(t *testing.T, name string, seed uint64, hasty bool) (twice int) {
	w := newWorld(t, name, seed, journal.Options{SegmentSize: 1024 << (seed % 4)})
	w.policies = onceText{}
	w.mustBoot()
	call := func(f func(e *engine.Engine, now int64)) {
		if err := w.broker.Call(f); err != nil {
			w.fatalf("%v", err)
		}
	}
	const jobs = 20
	var s *engine.Session
	held := make(map[uint64]bool)
	call(func(e *engine.Engine, now int64) {
		s = e.Open(onceWorker{})
		for range jobs {
			e.Put(now, s, engine.Spec{TTR: 1 + w.rng.Uint32N(3)}, make([]byte, w.rng.IntN(200)))
		}
		for range 1 + w.rng.IntN(jobs) {
			job, _ := e.Reserve(now, s, 0)
			held[job.ID] = true
		}
	})
	if w.rng.IntN(2) == 0 {
		time.Sleep(2 * time.Second) // some reservations time out
	}
	call(func(e *engine.Engine, _ int64) {
		e.SetPolicy([]string{"*", engine.DefaultTube}[seed%2], "once")
	})
	for done := hasty; !done; {
		call(func(e *engine.Engine, _ int64) { done, _ = e.Settled() })
	}
	if w.rng.IntN(2) == 0 {
		w.kill()
	} else {
		w.powerCut()
	}
	w.mustBoot()
	call(func(e *engine.Engine, now int64) {
		s := e.Open(onceWorker{})
		for job, o := e.Reserve(now, s, 0); o == engine.OK; job, o = e.Reserve(now, s, 0) {
			if held[job.ID] {
				twice++
			}
		}
	})
	w.kill()
	return twice
}

// onceText contains policies that permit one attempt in patterns with the text "once".
type onceText map[string]string

func (p onceText) Of(tube string) *engine.Policy {
	if p[tube] == "once" || p["*"] == "once" {
		return &engine.Policy{MaxAttempts: 1}
	}
	return nil
}

func (p onceText) With(pattern, text string) engine.Policies {
	return onceText{pattern: text}
}

// A put of a duplicate returns the id of a job that survives. This holds for every end of
// the server, even if the disk is full or the journal cannot be written.
func TestUnique(t *testing.T) {
	duplicates, worlds := 0, 0
	eachSeed(t, 6, func(t *testing.T, name string, seed uint64) {
		n, lost := livesUnique(t, name, seed, false)
		if lost != 0 {
			t.Fatalf("%s: job %d, whose id a put returned, was lost", name, lost)
		}
		duplicates += n
		worlds++
	})
	if worlds >= 6 && duplicates < 20*worlds {
		t.Errorf("in %d worlds only %d puts were duplicates", worlds, duplicates)
	}
}

// livesUnique returns the number of duplicate puts, and the id of an acknowledged job
// that was lost, or 0. A hasty server answers before changes are durable.
func livesUnique(t *testing.T, name string, seed uint64, hasty bool) (duplicates int, lost uint64) {
	w := newWorld(t, name, seed, journal.Options{SegmentSize: 1024 << (seed % 4)})
	policy := &engine.Policy{Unique: byLength, UniqueWhile: engine.While(seed % 3), UniqueMode: engine.UniqueMode(seed / 3 % 3)}
	w.policies = engine.PolicyFunc(func(string) *engine.Policy { return policy })
	told := make(map[uint64]bool) // ids of jobs that must exist
	for range 6 {
		w.disk.SetLimit(0)
		w.mustBoot()
		w.broker.Call(func(e *engine.Engine, _ int64) {
			for id := range told {
				if _, o := e.Peek(id); o != engine.OK {
					lost = id
				}
			}
		})
		if lost != 0 {
			w.kill()
			return duplicates, lost
		}
		w.disk.CutAt(w.disk.Ops() + 1 + w.rng.IntN(150))
		var sessions []*engine.Session
		for range 60 {
			turn := make(map[uint64]bool)
			err := w.broker.Call(func(e *engine.Engine, now int64) {
				w.check(e)
				for len(sessions) < 4 {
					sessions = append(sessions, e.Open(nil))
				}
				for range 1 + w.rng.IntN(5) {
					w.actUnique(e, now, sessions[w.rng.IntN(4)], turn, told)
				}
			})
			if err == nil && !w.dark() || hasty {
				for id, duplicate := range turn {
					told[id] = true
					duplicates += map[bool]int{true: 1}[duplicate]
				}
			}
			if w.rest(); w.dark() {
				break
			}
			if w.rng.IntN(30) == 0 {
				w.disk.SetLimit(int64(w.rng.IntN(2)))
			}
		}
		w.end()
	}
	return duplicates, 0
}

// actUnique performs a random action. It records in turn the ids that puts return, and
// whether they are duplicates. Jobs that it deletes are removed from turn and told.
func (w *world) actUnique(e *engine.Engine, now int64, s *engine.Session, turn, told map[uint64]bool) {
	id := e.LastID() - w.rng.Uint64N(min(e.LastID()+1, 20))
	switch w.rng.IntN(12) {
	default:
		id, o := e.Put(now, s, engine.Spec{Pri: w.rng.Uint32N(3), TTR: 1 + w.rng.Uint32N(3), Delay: w.rng.Uint32N(2)}, make([]byte, w.rng.IntN(200)))
		if o == engine.OK || o == engine.Duplicate {
			turn[id] = o == engine.Duplicate
		}
	case 4, 5:
		e.Reserve(now, s, 0)
	case 6:
		e.ReserveJob(now, s, id)
	case 7:
		e.Release(now, s, id, 0, w.rng.Uint32N(2))
	case 8:
		e.Bury(s, id, 0)
	case 9:
		e.KickJob(now, id)
	case 10, 11:
		delete(turn, id)
		delete(told, id)
		e.Delete(s, id)
	}
}

// TestUniquePlanted checks that TestUnique detects a server that answers puts before they
// are durable.
func TestUniquePlanted(t *testing.T) {
	seeds.Find(t, 1, func(t *testing.T, seed uint64) (lost string) {
		synctest.Test(t, func(t *testing.T) {
			if _, id := livesUnique(t, t.Name(), seed, true); id != 0 {
				lost = fmt.Sprintf("job %d was lost", id)
			}
		})
		return lost
	})
}
