package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Whatever happens to the files of a running server, a look tells, and all jobs
// are written anew: what is deleted stays deleted, nothing is missing.
func TestLostFiles(t *testing.T) {
	for how, lose := range map[string]func(fsys vfs.FS, name string) error{
		"removed": vfs.FS.Remove,
		"emptied": func(fsys vfs.FS, name string) error { return truncate(fsys, name, 0) },
		"cut":     func(fsys vfs.FS, name string) error { return truncate(fsys, name, 1000) },
	} {
		t.Run(how, func(t *testing.T) { testLostFiles(t, lose) })
	}
}

func truncate(fsys vfs.FS, name string, size int64) error {
	f, err := fsys.OpenWrite(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func testLostFiles(t *testing.T, loseFile func(fsys vfs.FS, name string) error) {
	for name, lose := range map[string]func(st wal.Stats, sequence uint64) bool{
		"the oldest":          func(st wal.Stats, sequence uint64) bool { return sequence == st.Oldest },
		"one in the middle":   func(st wal.Stats, sequence uint64) bool { return sequence == st.Oldest+2 },
		"the one written":     func(st wal.Stats, sequence uint64) bool { return sequence == st.Current },
		"the preallocated":    func(st wal.Stats, sequence uint64) bool { return sequence > st.Current },
		"all but the current": func(st wal.Stats, sequence uint64) bool { return sequence != st.Current },
		"all":                 func(wal.Stats, uint64) bool { return true },
	} {
		for _, atClose := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, at the end %v", name, atClose), func(t *testing.T) {
				b := newBench(t, Options{SegmentSize: 4096})
				j := b.log
				var ids []uint64
				for i := range 200 {
					b.turn(func() { ids = append(ids, b.put(engine.Spec{Pri: uint32(i)}, 100)) })
				}
				b.turn(func() { b.eng.Pause(b.now, []byte("default"), 1000) })
				for i, id := range ids {
					if i%3 != 0 {
						b.turn(func() { b.eng.Delete(b.s, id) })
					}
				}
				st := j.Stats()
				for n := uint64(1); n < st.Current+10; n++ {
					if lose(st.Stats, n) {
						if err := loseFile(j.fs, "/"+wal.FileName(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
							t.Fatal(err)
						}
					}
				}
				if !atClose {
					told := false
					for range 5 {
						b.now += int64(10 * time.Second)
						b.turn(func() {})
						var lost wal.LostError
						told = told || errors.As(j.Stats().Trouble, &lost)
					}
					if wantTold := name != "the preallocated"; told != wantTold {
						t.Errorf("the statistics told of it: %v", told)
					}
					if err := j.Stats().Trouble; err != nil {
						t.Errorf("afterwards: %v", err)
					}
				}
				if err := errors.Join(j.Check(), j.Close()); err != nil {
					t.Fatal(err)
				}
				after := engine.New(engine.Options{Logged: true})
				report, err := Load(j.fs, "/", after, 0)
				if err != nil {
					t.Fatal(err)
				}
				if want := (len(ids) + 2) / 3; report.Jobs != want {
					t.Errorf("%d jobs, want %d", report.Jobs, want)
				}
				for i, id := range ids {
					if _, ok := after.Snapshot(id); ok != (i%3 == 0) {
						t.Errorf("job %d is there: %v", id, ok)
					}
				}
				if _, paused := after.PauseOf("default"); !paused {
					t.Error("the pause is lost")
				}
				b.reopen(j.fs.(*memfs.FS)) // for the end of the bench
			})
		}
	}
}

// When a look misses the file that is written, the log heals in that turn: no client
// is refused anything.
func TestLostTipHealsAtOnce(t *testing.T) {
	b := newBench(t, Options{SegmentSize: 4096})
	b.turn(func() { b.put(engine.Spec{}, 100) })
	if err := b.log.fs.Remove("/" + wal.FileName(b.log.Stats().Current)); err != nil {
		t.Fatal(err)
	}
	b.now += lookPause
	b.turn(func() {}) // the look begins
	b.turn(func() {}) // and tells
	if st := b.log.Stats(); st.Err != nil || st.Trouble == nil {
		t.Errorf("changes are refused: %v; the health is %v", st.Err, st.Trouble)
	}
	b.turn(func() { b.put(engine.Spec{}, 100) })
}

// A directory that was exchanged for an older copy of it does not count for the
// one that the server wrote to.
func TestDirectoryExchanged(t *testing.T) {
	b := newBench(t, Options{SegmentSize: 4096})
	var ids []uint64
	for range 20 {
		b.turn(func() { ids = append(ids, b.put(engine.Spec{}, 100)) })
	}
	disk := b.log.fs.(*memfs.FS)
	name := "/" + wal.FileName(b.log.Stats().Current)
	stale := fileContents(t, disk, name)
	b.turn(func() { ids = append(ids, b.put(engine.Spec{}, 100)) })
	if b.log.Stats().Current != 1 {
		t.Fatal("the test needs one segment")
	}
	exchange(t, disk, name, stale)
	for range 8 {
		b.now += int64(10 * time.Second)
		b.turn(func() {})
	}
	if err := b.log.Stats().Trouble; err != nil {
		t.Error(err)
	}
	after := engine.New(engine.Options{Logged: true})
	report, err := Load(disk, "/", after, 0)
	if err != nil || report.Jobs != len(ids) {
		t.Errorf("%d jobs of %d, %v", report.Jobs, len(ids), err)
	}
}

// A server that is stopped before everything is written anew does so at the end, even
// if the files seem to be all there: here a copy is in the place of the directory.
func TestStopWhileRewriting(t *testing.T) {
	const jobs = 10000
	b := newBench(t, Options{SegmentSize: 16 << 20})
	disk := b.log.fs.(*memfs.FS)
	name := "/" + wal.FileName(1)
	var stale []byte
	for n := range jobs {
		if n == jobs/2 {
			stale = fileContents(t, disk, name)
		}
		b.turn(func() { b.put(engine.Spec{}, 100) })
	}
	exchange(t, disk, name, stale)
	for range 4 {
		b.now += lookPause
		b.turn(func() {})
	}
	if b.log.lookout.rewriting == nil {
		t.Fatal("all is written anew: there is nothing to test")
	}
	if b.log.Stats().Trouble == nil {
		t.Error("the health is well before all is written anew")
	}
	if err := b.log.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Load(disk, "/", engine.New(engine.Options{Logged: true}), 0)
	if err != nil || report.Jobs != jobs {
		t.Errorf("%d jobs of %d, %v", report.Jobs, jobs, err)
	}
	b.reopen(disk) // for the end of the bench
}

// exchange puts a file with other contents in the place of one.
func exchange(t *testing.T, disk *memfs.FS, name string, contents []byte) {
	t.Helper()
	if err := disk.Remove(name); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(contents, 0); err != nil {
		t.Fatal(err)
	}
}

func fileContents(t *testing.T, disk *memfs.FS, name string) []byte {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// A file that cannot be looked for is not lost: the health tells the error, and
// nothing is written anew or removed, neither then nor at the end.
func TestLookFails(t *testing.T) {
	b := newSickBench(t)
	for range 100 {
		b.tryPut(100)
	}
	before := b.log.Stats()
	files, err := b.disk.List("/")
	if err != nil {
		t.Fatal(err)
	}
	b.fsys.Set(faultfs.Fault{Op: faultfs.Size, Sticky: true})
	for range 3 {
		b.now += lookPause
		b.turn(func() {})
	}
	b.wantTrouble("cannot be looked for")
	after := b.log.Stats()
	if after.Err != nil || after.Written != before.Written {
		t.Errorf("the journal refuses changes (%v), or was written anew: %d records, then %d", after.Err, before.Written, after.Written)
	}
	if now, err := b.disk.List("/"); err != nil || !slices.Equal(now, files) {
		t.Errorf("other files than before: %q, then %q (%v)", files, now, err)
	}
	if o := b.tryPut(100); o != engine.OK {
		t.Errorf("a put meanwhile: outcome %d", o)
	}
	b.fsys.Set()
	for range 2 {
		b.now += lookPause
		b.turn(func() {})
	}
	b.wantTrouble("")
	b.fsys.Set(faultfs.Fault{Op: faultfs.Size}) // once: the end looks again
}

// A file that cannot be looked for at the end is told of, but what was written is
// there.
func TestLookFailsAtEnd(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	j := New(Options{SegmentSize: segment})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, "/", eng); err != nil {
		t.Fatal(err)
	}
	eng.Put(0, eng.Open(nil), engine.Spec{TTR: 1}, []byte("a job"))
	if err := j.Append(eng.TakeChanges()); err != nil {
		t.Fatal(err)
	}
	fsys.Set(faultfs.Fault{Op: faultfs.Size, Sticky: true})
	if err := j.Close(); !errors.Is(err, syscall.EIO) || strings.Contains(err.Error(), "lost") {
		t.Errorf("close: %v, want EIO, and nothing of lost files", err)
	}
	report, err := Load(disk, "/", engine.New(engine.Options{}), 0)
	if err != nil || report.Jobs != 1 || len(report.Torn) > 0 {
		t.Errorf("afterwards: %+v, %v", report, err)
	}
}

// Many jobs are written anew in slices, while others are put and deleted. The health
// tells of the lost file until that is done.
func TestRewriteInSlices(t *testing.T) {
	const jobs, size = 20000, 100
	b := newBench(t, Options{SegmentSize: 256 << 10})
	j := b.log
	var ids []uint64
	for range jobs / 100 {
		b.turn(func() {
			for range 100 {
				ids = append(ids, b.put(engine.Spec{}, size))
			}
		})
	}
	b.turn(func() { b.eng.Pause(b.now, []byte("default"), 1000) })
	lost := j.Stats().Oldest
	if err := j.fs.Remove("/" + wal.FileName(lost)); err != nil {
		t.Fatal(err)
	}
	b.now += lookPause
	b.turn(func() {}) // the look begins
	turns, written := 0, j.Stats().Written
	for next := b.now; ; turns++ {
		b.now = max(next, b.now)
		if next = b.turn(func() {
			b.eng.Delete(b.s, ids[0])
			ids = append(ids[1:], b.put(engine.Spec{}, size))
		}); j.Stats().Oldest > lost && j.lookout.rewriting == nil {
			break
		}
		if j.Stats().Trouble == nil {
			t.Fatalf("in turn %d the health is well, and segment %d not retired", turns, lost)
		}
		now := j.Stats().Written
		if bytes := int64(now-written) * wal.Cost(size); bytes > rewriteStep+4<<10 {
			t.Fatalf("turn %d has written %d bytes", turns, bytes)
		}
		if turns > 1000 {
			t.Fatal("it does not end")
		}
		written = now
	}
	if turns < jobs*size/rewriteStep {
		t.Errorf("that took %d turns only", turns)
	}
	for range 5 {
		b.now += lookPause
		b.turn(func() {})
	}
	if st := j.Stats(); st.Trouble != nil {
		t.Errorf("afterwards: %v", st.Trouble)
	}
	if err := errors.Join(j.Check(), j.Close()); err != nil {
		t.Fatal(err)
	}
	after := engine.New(engine.Options{Logged: true})
	if report, err := Load(j.fs, "/", after, 0); err != nil || report.Jobs != jobs {
		t.Errorf("%d jobs, want %d: %v", report.Jobs, jobs, err)
	}
	for _, id := range ids {
		if _, ok := after.Snapshot(id); !ok {
			t.Fatalf("job %d is lost", id)
		}
	}
	if _, paused := after.PauseOf("default"); !paused {
		t.Error("the pause is lost")
	}
	b.reopen(j.fs.(*memfs.FS)) // for the end of the bench
}

// When there is no room to write everything anew, that is tried once a second, and not
// in each turn.
func TestRewriteRetries(t *testing.T) {
	b := newSickBench(t)
	for range 1000 {
		b.tryPut(100)
	}
	if err := b.disk.Remove("/" + wal.FileName(b.log.Stats().Oldest)); err != nil {
		t.Fatal(err)
	}
	b.fsys.Set(faultfs.Fault{Op: faultfs.Create, Sticky: true, Err: syscall.ENOSPC})
	for range 3 {
		b.now += lookPause
		b.turn(func() {})
	}
	tried := func(turns int) int {
		written := b.log.Stats().Written
		fired := b.fsys.Fired()
		for range turns {
			b.log.preparedAt = b.now // the background does not try either
			b.log.rewriteTurn(b.now)
		}
		if now := b.log.Stats().Written; now != written {
			t.Fatalf("%d records were written on a full disk", now-written)
		}
		return b.fsys.Fired() - fired
	}
	if n := tried(10); n > 0 {
		t.Errorf("ten turns at the same moment try %d times", n)
	}
	b.now += healPause
	if n := tried(1); n == 0 {
		t.Error("a second later there is no try")
	}
	b.fsys.Set()
	for range 5 {
		b.now += lookPause
		b.turn(func() {})
	}
	b.wantTrouble("")
}
