package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// epoch is the zero of the engine's clock in the tests: 2033-05-18 03:33:20 UTC.
const epoch = 2_000_000_000_000_000_000

// A bench is an engine with a journal and its own clock, without a broker.
type bench struct {
	tb  testing.TB
	eng *engine.Engine
	log *Journal
	s   *engine.Session
	now int64
}

func newBench(tb testing.TB, opt Options) *bench {
	tb.Helper()
	b := &bench{tb: tb}
	b.start(memfs.New(), opt)
	return b
}

// start opens a journal, which is checked and closed when the test ends.
func (b *bench) start(fsys vfs.FS, opt Options) {
	b.tb.Helper()
	b.open(fsys, opt)
	b.tb.Cleanup(func() {
		if err := errors.Join(b.eng.Check(), b.log.Check(), b.log.Close()); err != nil {
			b.tb.Error(err)
		}
	})
}

func (b *bench) open(fsys vfs.FS, opt Options) {
	b.tb.Helper()
	b.log = New(opt)
	b.eng = engine.New(engine.Options{Logged: true, Admit: b.log.Admit})
	if _, err := b.log.Open(fsys, "/", b.eng); err != nil {
		b.tb.Fatal(err)
	}
	b.s = b.eng.Open(nil)
}

// reopen starts another server with the files of a disk.
func (b *bench) reopen(disk *memfs.FS) {
	b.tb.Helper()
	b.open(disk, Options{SegmentSize: b.log.opt.SegmentSize, Sync: b.log.opt.Sync})
}

// turn executes a turn as a broker does, and returns the time of the next one.
func (b *bench) turn(do func()) (next int64) {
	b.tb.Helper()
	next, err := b.tryTurn(do)
	if err != nil {
		b.tb.Fatal(err)
	}
	return next
}

// tryTurn is like turn but returns an error.
func (b *bench) tryTurn(do func()) (next int64, err error) {
	b.now++
	b.eng.Tick(b.now)
	do()
	err = errors.Join(b.log.Append(b.eng.TakeChanges()), b.log.commit())
	next = b.log.Housekeep(b.now)
	b.log.preparer.wait()
	b.log.syncer.wait()
	return next, err
}

// idle runs turns without commands until the journal has no more work.
func (b *bench) idle() {
	b.tb.Helper()
	for range 1000 {
		if b.turn(func() {}); b.log.rewrite == nil {
			b.turn(func() {}) // this removes files
			return
		}
	}
	b.tb.Fatal("the journal is never at rest")
}

// commit flushes, and syncs if a sync is promised.
func (j *Journal) commit() error {
	durable, err := j.Flush()
	if err != nil || durable {
		return err
	}
	return j.Sync()
}

func (b *bench) put(spec engine.Spec, size int) (id uint64) {
	spec.TTR = max(spec.TTR, 60)
	id, o := b.eng.Put(b.now, b.s, spec, make([]byte, size))
	if o != engine.OK {
		b.tb.Fatal("put: outcome", o)
	}
	return id
}

// fresh returns the size in bytes of a log that contains only the jobs.
func (b *bench) fresh() (n int64) {
	var buf []byte
	for c := range b.eng.Snapshots {
		buf = record.Append(buf[:0], &c, 0)
		n += wal.Cost(len(buf) + len(c.Body))
	}
	return n
}

const segment = 64 << 10

// small checks that the log is smaller than twice the jobs plus two segments.
func (b *bench) small(when string) {
	b.tb.Helper()
	fresh := b.fresh()
	if st := b.log.Stats(); st.Bytes >= 2*fresh+2*b.log.opt.SegmentSize {
		b.tb.Fatalf("%s, the log has %d bytes in %d segments of %d; the jobs take %d", when, st.Bytes, st.Segments, b.log.opt.SegmentSize, fresh)
	}
}

// The log stays small under any load, and cleaning ends when there is no load.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, work := range map[string]func(b *bench) func(){
		"one old job and an endless cycle of delayed releases": func(b *bench) func() {
			b.turn(func() { b.put(engine.Spec{Delay: 1 << 30}, 100) })
			for range 50 {
				b.turn(func() { b.put(engine.Spec{}, 100) })
			}
			return func() {
				b.now += 1e9
				b.eng.Tick(b.now)
				for j, o := b.eng.Reserve(b.now, b.s, 0); o == engine.OK; j, o = b.eng.Reserve(b.now, b.s, 0) {
					b.eng.Release(b.now, b.s, j.ID, 1<<31, 1)
				}
			}
		},
		"jobs that live for a moment, and a few that stay": func(b *bench) func() {
			return func() {
				for range 20 {
					id := b.put(engine.Spec{}, 64)
					if rng.IntN(500) > 0 {
						b.eng.Delete(b.s, id)
					}
				}
			}
		},
		"many jobs without a body, some of them replaced at a time": func(b *bench) func() {
			return replace(b, rng, 20000, 0)
		},
		"larger jobs, some of them replaced at a time": func(b *bench) func() {
			return replace(b, rng, 1000, 1500)
		},
		"jobs that are buried and kicked": func(b *bench) func() {
			for range 1000 {
				b.turn(func() { b.put(engine.Spec{Pri: 1 << 30}, rng.IntN(20)) })
			}
			return func() {
				for range 5 {
					if j, o := b.eng.Reserve(b.now, b.s, 0); o == engine.OK {
						b.eng.Bury(b.s, j.ID, 1<<30)
					}
				}
				b.eng.Kick(b.now, b.s, 5)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{SegmentSize: segment, Epoch: epoch})
			do := work(b)
			rounds := 0
			for n := range seeds.Rounds(t, 2500) {
				rounds++
				before := b.log.Stats().Bytes
				b.turn(do)
				if n%100 == 0 {
					b.small(fmt.Sprintf("in turn %d", n))
				}
				if grown := b.log.Stats().Bytes - before; grown > 8*segment {
					t.Fatalf("turn %d made the log grow by %d bytes", n, grown)
				}
			}
			if st := b.log.Stats(); rounds >= 2500 && (st.Migrated == 0 || st.Oldest == 1) { // fewer rounds need no cleaning
				t.Errorf("nothing was cleaned: %+v", st)
			}
			for n := 0; b.turn(func() {}) != engine.Never; n++ {
				if n == 1000 {
					t.Fatalf("cleaning does not end: %+v", b.log.Stats())
				}
			}
			b.small("at rest")
		})
	}
}

// replace returns a step that puts and deletes some of the given number of jobs.
func replace(b *bench, rng *rand.Rand, jobs, size int) func() {
	var ids []uint64
	for range jobs {
		b.turn(func() { ids = append(ids, b.put(engine.Spec{}, size)) })
	}
	return func() {
		for range 10 {
			i := rng.IntN(jobs)
			b.eng.Delete(b.s, ids[i])
			ids[i] = b.put(engine.Spec{}, size)
		}
	}
}

// When most jobs are deleted at once, the log shrinks even without commands, and each
// turn does only a small part of the work.
func TestCleaningWhenIdle(t *testing.T) {
	const size = 4000
	b := newBench(t, Options{SegmentSize: 4 << 20})
	var ids []uint64
	for range 3000 {
		b.turn(func() { ids = append(ids, b.put(engine.Spec{}, size)) })
	}
	b.turn(func() {
		for i, id := range ids {
			if i%3 > 0 {
				b.eng.Delete(b.s, id)
			}
		}
	})
	turns, migrated := 0, b.log.Stats().Migrated
	for next := b.now; next != engine.Never; turns++ {
		b.now = next
		next = b.turn(func() {})
		now := b.log.Stats().Migrated
		if moved := (now - migrated) * size; moved > 2*cleanStep {
			t.Fatalf("turn %d rewrote %d bytes", turns, moved)
		}
		migrated = now
	}
	b.small("at rest")
	if turns < 30 || turns > 1000 || b.now > 5e9 {
		t.Errorf("that took %d turns and %d ms", turns, b.now/1e6)
	}
}

// A very large put while cleaning is due does not cause a long turn. The jobs and the
// disk take 250 MB of memory.
func TestCleaningAfterLargePut(t *testing.T) {
	const jobs, size = 40000, 1000
	b := newBench(t, Options{SegmentSize: 8 << 20})
	var ids []uint64
	for range jobs / 100 {
		b.turn(func() {
			for range 100 {
				ids = append(ids, b.put(engine.Spec{}, size))
			}
		})
	}
	for i := 0; b.log.bytes < 7*b.log.cleaner.kept()/4+b.log.opt.SegmentSize; i++ {
		if i%3 > 0 {
			b.eng.Delete(b.s, ids[i])
		}
		if err := errors.Join(b.log.Append(b.eng.TakeChanges()), b.log.commit()); err != nil {
			t.Fatal(err)
		}
	}
	b.put(engine.Spec{}, 4<<20)
	most, migrated, turns := uint64(0), b.log.Stats().Migrated, 0
	for next := b.now; next != engine.Never; turns++ {
		if turns == 1000 { // about twenty are enough
			t.Fatal("the journal is never at rest")
		}
		b.now = max(b.now, next)
		next = b.turn(func() {})
		now := b.log.Stats().Migrated
		most = max(most, now-migrated)
		migrated = now
	}
	if most == 0 || most*size > 2*maxCleanStep {
		t.Errorf("a turn rewrote %d jobs of %d bytes", most, size)
	}
	b.small("at rest")
}

// Cleaning ends even if records take much more space than estimated, or if segments
// contain little more than their overhead.
func TestCleaningEnds(t *testing.T) {
	for name, test := range map[string]struct{ segment, body int }{
		"long records":  {segment, 0},
		"tiny segments": {wal.MinSegmentSize, 160},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{SegmentSize: int64(test.segment)})
			b.eng.Use(b.s, []byte("a"))
			for n := range 4000 {
				b.turn(func() {
					id := b.put(engine.Spec{Pri: 1<<32 - 1, Delay: 1<<32 - 1, TTR: 1<<32 - 1}, test.body)
					b.eng.KickJob(b.now, id)
					b.eng.ReserveJob(b.now, b.s, id)
					b.eng.Release(b.now, b.s, id, 1<<32-1, 1<<32-1)
					if test.body > 0 && n >= 100 {
						b.eng.Delete(b.s, id-100)
					}
				})
			}
			for n := 0; b.turn(func() {}) != engine.Never; n++ {
				if n == 10000 {
					t.Fatalf("cleaning does not end: %+v", b.log.Stats())
				}
			}
		})
	}
}

// A server that is killed repeatedly does not leave one file per start, even if a job
// remains.
func TestFilesOfManyStarts(t *testing.T) {
	for _, stays := range []bool{false, true} {
		b := newBench(t, Options{SegmentSize: segment})
		disk := b.log.fs.(*memfs.FS)
		if stays {
			b.turn(func() { b.put(engine.Spec{}, 10) })
		}
		for n := range 40 {
			disk = disk.Crash(rand.New(rand.NewPCG(1, uint64(n))))
			b.reopen(disk)
			b.turn(func() { b.eng.Delete(b.s, b.put(engine.Spec{}, 10)) })
			b.rest()
			if st := b.log.Stats(); st.Segments > maxShort+2 {
				t.Fatalf("a job stays: %v; %d starts left %d segments", stays, n+1, st.Segments)
			}
		}
	}
}
