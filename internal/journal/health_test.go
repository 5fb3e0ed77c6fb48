package journal

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// A sickBench is a bench with a readable log and a disk that can be full or fail.
type sickBench struct {
	bench
	disk *memfs.FS
	fsys *faultfs.FS
	said bytes.Buffer
}

func newSickBench(t *testing.T) *sickBench {
	t.Helper()
	b := &sickBench{disk: memfs.New()}
	b.fsys = faultfs.New(b.disk)
	b.tb = t
	b.start(b.fsys, Options{SegmentSize: segment, Logger: slog.New(slog.NewTextHandler(&b.said, nil))})
	return b
}

// tryPut puts a job of size bytes and returns the outcome.
func (b *sickBench) tryPut(size int) (o engine.Outcome) {
	b.turn(func() { _, o = b.eng.Put(b.now, b.s, engine.Spec{TTR: 9}, make([]byte, size)) })
	return o
}

// fill puts jobs until one is refused, and returns the outcome.
func (b *sickBench) fill(size int) (o engine.Outcome) {
	for o == engine.OK {
		o = b.tryPut(size)
	}
	return o
}

func (b *sickBench) wantHealth(want string) {
	b.tb.Helper()
	switch err := b.log.Stats().Health; {
	case want == "" && err != nil:
		b.tb.Errorf("the health is %q, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		b.tb.Errorf("the health is %v, want %q in it", err, want)
	}
}

// wantRefusal checks that the journal refuses jobs, or that it does not.
func (b *sickBench) wantRefusal(want bool) {
	b.tb.Helper()
	if err := b.log.Stats().Refusal; (err != nil) != want {
		b.tb.Errorf("jobs are refused because of %v, want a refusal: %v", err, want)
	}
}

// wantSaid checks the number of log lines that contain a text.
func (b *sickBench) wantSaid(line string, times int) {
	b.tb.Helper()
	if n := strings.Count(b.said.String(), line); n != times {
		b.tb.Errorf("%d log lines with %q, want %d:\n%s", n, line, times, &b.said)
	}
}

// While puts are refused, the stats contain the reason. The log reports when this starts
// and when it ends, even if there are no further puts.
func TestHealthIsReported(t *testing.T) {
	for _, test := range []struct {
		name    string
		hinder  func(b *sickBench, on bool)
		outcome engine.Outcome
		health  string
	}{
		{"full disk", func(b *sickBench, on bool) {
			b.disk.SetLimit(0)
			if on {
				b.disk.SetLimit(1)
			}
		}, engine.OutOfMemory, "no space left on device"},
		{"no descriptors", func(b *sickBench, on bool) {
			b.fsys.Set()
			if on {
				b.fsys.Set(faultfs.Fault{Op: faultfs.Create, Sticky: true, Err: syscall.EMFILE})
			}
		}, engine.OutOfMemory, "too many open files"},
		{"a directory that fails", func(b *sickBench, on bool) {
			b.fsys.Set()
			if on {
				b.fsys.Set(faultfs.Fault{Op: faultfs.Create, Sticky: true})
			}
		}, engine.Failed, "input/output error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newSickBench(t)
			for round := 1; round <= 2; round++ {
				b.wantHealth("")
				test.hinder(b, true)
				if o := b.fill(1000); o != test.outcome {
					t.Fatalf("outcome %d, want %d", o, test.outcome)
				}
				for range 20 {
					b.now += healPause / 3
					b.tryPut(1000)
				}
				b.wantHealth("new jobs are refused: ")
				b.wantHealth(test.health)
				b.wantRefusal(true)
				b.wantSaid("no space for the journal; refusing new jobs", round)
				b.wantSaid("journal has space again", round-1)
				test.hinder(b, false)
				b.rest()
				b.wantHealth("")
				b.wantRefusal(false)
				b.wantSaid("journal has space again", round)
			}
			if o := b.tryPut(1000); o != engine.OK {
				t.Errorf("put without faults: outcome %d", o)
			}
		})
	}
}

// While only large jobs are refused, the log does not report each of them.
func TestHealthOfLargeJobs(t *testing.T) {
	b := newSickBench(t)
	b.disk.SetLimit(b.disk.Used() + 8*segment)
	for range 50 {
		if o := b.tryPut(64 * segment); o != engine.OutOfMemory {
			t.Fatalf("a job larger than the disk: outcome %d", o)
		}
		if o := b.tryPut(1); o != engine.OK {
			t.Fatalf("a small job: outcome %d", o)
		}
		b.now += healPause
	}
	b.wantHealth("no space left on device")
	b.wantSaid("no space for the journal", 1)
	b.wantSaid("journal has space again", 0)
	b.disk.SetLimit(0)
	b.rest()
	b.wantHealth("")
	b.wantSaid("journal has space again", 1)
}

// While puts of a size are refused, the journal stays full: space for a job does not
// count if there is no space for its delete.
func TestFullUntilAPutFits(t *testing.T) {
	for size := 1000; size < 1060; size++ { // for some sizes, only the delete has no space
		b := newSickBench(t)
		b.disk.SetLimit(b.disk.Used() + 8*segment)
		b.fill(size)
		b.now += healPause
		b.turn(func() {})
		if !b.log.Refuses() && b.tryPut(size) != engine.OK {
			t.Errorf("the journal reports space, but has none for a job of %d bytes", size)
		}
	}
}

// On a full disk the journal tries to create a file at intervals, not for each put, and a
// failed attempt uses no sequence number.
func TestFullDiskIsTriedRarely(t *testing.T) {
	b := newSickBench(t)
	b.disk.SetLimit(b.disk.Used() + 8*segment)
	b.fill(1000)
	before := b.log.Stats().Current
	b.fsys.Set(faultfs.Fault{Op: faultfs.Create, N: math.MaxInt})
	for range 1000 {
		if o := b.tryPut(1000); o != engine.OutOfMemory {
			t.Fatalf("a put on a full disk: outcome %d", o)
		}
		b.now += healPause / 500
	}
	if n := b.fsys.Seen(); n > 10 {
		t.Errorf("1000 puts in two seconds tried %d times to make a file", n)
	}
	b.wantSaid("no space for the journal", 1)
	b.disk.SetLimit(0)
	b.rest()
	for b.log.Stats().Current == before {
		if o := b.tryPut(1000); o != engine.OK {
			t.Fatalf("a put after the disk has space again: outcome %d", o)
		}
	}
	if after := b.log.Stats().Current; after != before+1 {
		t.Errorf("segment %d is followed by %d", before, after)
	}
}

// On a full disk, release, bury, kick and pause work until the space reserved for them is
// used. The journal reserves it again when the disk has space.
func TestStatesOnFullDisk(t *testing.T) {
	b := newSickBench(t)
	b.disk.SetLimit(b.disk.Used() + 8*segment)
	b.fill(1000)
	b.disk.SetLimit(1)
	b.fill(10)
	do := func() (o engine.Outcome) {
		b.turn(func() {
			job, _ := b.eng.Reserve(b.now, b.s, 0)
			if o = b.eng.Bury(b.s, job.ID, 0); o == engine.OK {
				o = b.eng.KickJob(b.now, job.ID)
			}
			if o == engine.OK {
				o = b.eng.Pause(b.now, []byte("default"), 0)
			}
		})
		return o
	}
	for round := range 2 {
		n := 0
		for ; do() == engine.OK; n++ {
		}
		if states := b.log.space.states.want; n < states/4-1 || n > 8*states { // a record rarely uses all of it
			t.Errorf("round %d: %d changes of three were done, with space for %d states", round, n, states)
		}
		if o := b.tryPut(10); o != engine.OutOfMemory {
			t.Errorf("round %d: put: outcome %d", round, o)
		}
		b.disk.SetLimit(0)
		b.rest()
		if n := b.log.space.states.have; n != b.log.space.states.want {
			t.Errorf("round %d: %d states have space again, not %d", round, n, b.log.space.states.want)
		}
		b.disk.SetLimit(1)
		b.fill(10)
	}
	b.disk.SetLimit(0)
}

// The background goroutine's error disappears after its first success, even if each turn
// gives it more work.
func TestBackgroundRecovers(t *testing.T) {
	b := newSickBench(t)
	b.tryPut(segment / 2)
	b.log.preparer.start(func() error { return syscall.EIO })
	b.log.preparer.wait()
	b.tryPut(segment / 2)
	b.wantHealth("cannot create or remove")
	b.wantRefusal(false)
	for range 3 {
		b.now += healPause
		b.tryPut(segment / 2) // uses the preallocated segment
	}
	b.wantHealth("")
}
