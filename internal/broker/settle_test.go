package broker

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

type turnRecord struct {
	appended int // number of changes in the log after it, or 0 if it made none
	settled  int // number of times that it was settled
	err      error
}

// For random callers, syncs and failures, the broker settles each turn once and in order.
// It reports success only if its own changes are durable.
func TestRandom(t *testing.T) {
	seeds.Each(t, 100, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			randomLife(t, t.Name(), rand.New(rand.NewPCG(seed, 0)))
		})
	})
}

func randomLife(t *testing.T, name string, rng *rand.Rand) {
	log := newFakeLog()
	log.blocking.Store(true)
	b := New(engine.New(engine.Options{Logged: true}), Options{Log: log})
	var turns []*turnRecord // in order; turns add to it
	order := 0              // number of turns that are settled
	syncing := false        // a sync is blocked until the test ends it

	// request returns a request that puts a job, or only reads, and records its turn.
	request := func(puts bool) request {
		return func(e *engine.Engine, now int64) {
			r := &turnRecord{}
			turns = append(turns, r)
			log.flushErr = nil
			if puts {
				if rng.IntN(10) == 0 {
					log.flushErr = errDisk
				}
				putting("a job")(e, now)
				r.appended = len(log.appended) + e.Promises()
			}
			n := len(turns)
			b.Await(settler(func(err error) {
				if order++; order != n {
					t.Fatalf("%s: turn %d is settled after %d others", name, n, order-1)
				}
				r.settled++
				r.err = err
				if err == nil && int64(r.appended) > log.synced.Load() {
					t.Fatalf("%s: turn %d is settled with %d of %d changes durable", name, n, log.synced.Load(), r.appended)
				}
				if err != nil && !errors.Is(err, errDisk) {
					t.Fatalf("%s: turn %d fails with %v", name, n, err)
				}
			}))
		}
	}
	// look records a sync that has started.
	look := func() {
		synctest.Wait()
		if !syncing {
			select {
			case <-log.begins:
				syncing = true
			default:
			}
		}
		if err := b.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	end := func(err error) {
		if syncing {
			log.failSyncs(err)
			syncing = false
			log.mayEnd <- struct{}{}
		}
	}

	var returned atomic.Int32 // calls of Do that have returned
	asked := int32(0)
	for range 100 {
		puts := rng.IntN(3) > 0
		switch rng.IntN(8) {
		case 0, 1:
			asked++
			go func() {
				b.NewCaller(request(puts)).Do()
				returned.Add(1)
			}()
		case 2, 3, 4:
			turn := len(turns)
			settled, err := b.NewCaller(request(puts)).Start(settler(func(error) {}))
			if r := turns[turn]; settled && (order != turn+1 || !errors.Is(err, r.err)) {
				t.Fatalf("%s: turn %d is settled with %v; %d turns are settled and it has %v", name, turn+1, err, order, r.err)
			}
		case 5:
			b.StartSync()
		case 6:
			go b.Sync()
		case 7:
			var err error
			if rng.IntN(3) == 0 {
				err = errDisk
			}
			end(err)
		}
		look()
	}
	log.blocking.Store(false)
	end(nil)
	synctest.Wait()
	log.failSyncs(nil)
	if err := errors.Join(b.Close(), b.Check()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	synctest.Wait()
	if order != len(turns) || returned.Load() != asked {
		t.Fatalf("%s: %d of %d turns are settled, %d of %d calls of Do have returned", name, order, len(turns), returned.Load(), asked)
	}
	for i, r := range turns {
		if r.settled != 1 {
			t.Fatalf("%s: turn %d is settled %d times", name, i+1, r.settled)
		}
	}
}

// If a turn without changes starts while earlier turns notify their waiters, it waits for
// them and then notifies its own waiters.
func TestTurnWhileOthersNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newFakeLog())
		telling, goOn := make(chan bool), make(chan bool)
		heard := make(hearing, 1)
		b.NewCaller(request(putting("a job"))).Start(settler(func(error) {
			telling <- true
			<-goOn
		}))
		b.StartSync()
		<-telling
		if settled, _ := b.NewCaller(request(func(*engine.Engine, int64) {})).Start(heard); settled {
			t.Error("settled before an earlier turn has notified its waiter")
		}
		goOn <- true
		synctest.Wait()
		if len(heard) != 1 {
			t.Error("not notified")
		}
	})
}

// A turn that starts when a sync ends is settled by that sync, or waits for it. It always
// notifies its waiter.
func TestTurnAsSyncEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newFakeLog())
		writer, reader := b.NewCaller(request(putting("a job"))), b.NewCaller(request(func(*engine.Engine, int64) {}))
		heard := make(hearing, 2)
		var later atomic.Int32
		for i := range 50_000 {
			told := 1
			writer.Start(heard)
			b.StartSync()
			for range i % 1_000 { // the sync can end at any point of the turn
				later.Add(1)
			}
			if settled, _ := reader.Start(heard); !settled {
				told++
			}
			for range told { // without the notification, this is a deadlock
				<-heard
			}
		}
		synctest.Wait()
		if err := b.Check(); err != nil {
			t.Error(err)
		}
	})
}
