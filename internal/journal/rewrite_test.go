package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// damages contains the ways to damage a file of a running server.
var damages = map[string]func(fsys vfs.FS, name string) error{
	"removed": vfs.FS.Remove,
	"emptied": func(fsys vfs.FS, name string) error {
		return change(fsys, name, func(f vfs.File) error { return f.Truncate(0) })
	},
	"cut": func(fsys vfs.FS, name string) error {
		return change(fsys, name, func(f vfs.File) error { return f.Truncate(1000) })
	},
}

func overwrite(fsys vfs.FS, name string) error {
	return change(fsys, name, func(f vfs.File) error {
		size, _, err := f.Stat()
		if err == nil {
			_, err = f.WriteAt(make([]byte, size/2), 0)
		}
		return err
	})
}

func change(fsys vfs.FS, name string, how func(vfs.File) error) error {
	f, err := fsys.OpenWrite(name)
	if err != nil {
		return err
	}
	return errors.Join(how(f), f.Close())
}

// A usedBench is a bench with many segments. Every third job remains, and the tube is
// paused.
type usedBench struct {
	*bench
	disk *memfs.FS
	left []uint64
}

func newUsedBench(t *testing.T) *usedBench {
	b := &usedBench{bench: newBench(t, Options{SegmentSize: 4096})}
	b.disk = b.log.fs.(*memfs.FS)
	for range 200 {
		b.add(t)
	}
	b.turn(func() { b.eng.Pause(b.now, []byte("default"), 1000) })
	return b
}

// add puts three jobs and deletes two of them.
func (b *usedBench) add(t *testing.T) {
	t.Helper()
	var ids []uint64
	b.turn(func() {
		ids = append(ids, b.put(engine.Spec{}, 100), b.put(engine.Spec{}, 100), b.put(engine.Spec{}, 100))
	})
	b.turn(func() { b.eng.Delete(b.s, ids[0]); b.eng.Delete(b.s, ids[2]) })
	b.left = append(b.left, ids[1])
}

// kill checks that the disk contains the whole queue, as it would be found after a kill.
func (b *usedBench) kill(t *testing.T) {
	t.Helper()
	after := engine.New(engine.Options{Logged: true})
	if _, err := Load(b.disk, "/", after, 0); err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for c := range after.Snapshots {
		ids = append(ids, c.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, b.left) {
		t.Errorf("%d jobs, want %d", len(ids), len(b.left))
	}
	if _, paused := after.PauseOf("default"); !paused {
		t.Error("the pause is lost")
	}
}

// When the current segment or the next one is lost, the journal is rewritten: deleted
// jobs stay deleted, and no job is missing.
func TestLostFiles(t *testing.T) {
	for name, lose := range map[string]func(st wal.Stats, sequence uint64) bool{
		"the current":      func(st wal.Stats, sequence uint64) bool { return sequence == st.Current },
		"the preallocated": func(st wal.Stats, sequence uint64) bool { return sequence > st.Current },
		"all":              func(wal.Stats, uint64) bool { return true },
	} {
		for how, damage := range damages {
			for _, atClose := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, at the end %v", name, how, atClose), func(t *testing.T) {
					b := newUsedBench(t)
					st := b.log.Stats().Stats
					for n := uint64(1); n < st.Current+10; n++ {
						if lose(st, n) {
							if err := damage(b.disk, "/"+wal.FileName(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
								t.Fatal(err)
							}
						}
					}
					for failed := false; !atClose && !failed; {
						var id uint64
						_, err := b.tryTurn(func() { id = b.put(engine.Spec{}, 100) })
						b.left = append(b.left, id)
						failed = err != nil
					}
					if !atClose {
						if b.log.Stats().Health == nil {
							t.Error("the health does not report it")
						}
						if err := b.log.Stats().Refusal; err != nil {
							t.Errorf("changes are refused: %v", err)
						}
						b.idle()
						b.kill(t)
					}
					if err := errors.Join(b.log.Check(), b.log.Close()); err != nil {
						t.Fatal(err)
					}
					b.kill(t)
					b.reopen(b.disk) // for the bench's check at the end
				})
			}
		}
	}
}

// Cleaning that finds damage starts a rewrite from memory.
func TestCleaningFindsDamage(t *testing.T) {
	b := newUsedBench(t)
	oldest := b.log.Stats().Oldest
	if err := overwrite(b.disk, "/"+wal.FileName(oldest)); err != nil {
		t.Fatal(err)
	}
	told := false
	for b.log.Stats().Oldest == oldest {
		b.add(t)
		told = told || b.log.Stats().Health != nil
	}
	if !told {
		t.Error("the health did not report it")
	}
	b.idle()
	if err := b.log.Stats().Health; err != nil {
		t.Errorf("afterwards: %v", err)
	}
	b.kill(t)
}

// An operator can request a rewrite of the whole journal.
func TestRewriteOnRequest(t *testing.T) {
	b := newUsedBench(t)
	newest := b.log.Stats().Current
	b.turn(b.log.Rewrite)
	b.idle()
	if st := b.log.Stats(); st.Health != nil || st.Oldest < newest {
		t.Errorf("afterwards the oldest segment is %d, %d was the newest (%v)", st.Oldest, newest, st.Health)
	}
	b.kill(t)
}

// A rewrite ends without other activity, even with background syncs: the journal itself
// syncs the record that removes the last older segment.
func TestRewriteEndsAtRest(t *testing.T) {
	const pause = 100 * time.Millisecond
	b := newBench(t, Options{SegmentSize: 4096, Sync: pause})
	putAndDelete := func() { b.eng.Delete(b.s, b.put(engine.Spec{}, 100)) }
	b.turn(putAndDelete)
	if err := b.log.Close(); err != nil {
		t.Fatal(err)
	}
	b.reopen(b.log.fs.(*memfs.FS))
	b.turn(putAndDelete) // in another segment
	b.now += int64(time.Second)
	b.turn(b.log.Rewrite)
	for range 20 {
		b.now += int64(pause)
		b.turn(func() {})
	}
	if _, waits := b.log.files.RemovalPending(); waits || b.log.rewrite != nil {
		t.Errorf("a file still waits for its removal: %v; the rewrite has not ended: %v", waits, b.log.rewrite != nil)
	}
}

// If the directory is replaced by an older copy, the server does not treat the copy as
// its journal, even if it stops before the rewrite is complete.
func TestDirectoryExchanged(t *testing.T) {
	for _, atClose := range []bool{false, true} {
		b := newUsedBench(t)
		copied := b.disk.Crash(rand.New(rand.NewPCG(1, 2))) // everything is synced
		b.add(t)
		names, err := copied.List("/")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name != "lock" {
				contents, err := vfs.ReadFile(copied, "/"+name)
				if err == nil {
					_ = b.disk.Remove("/" + name) // the file can be missing
					err = vfs.WriteFile(b.disk, "/"+name, contents)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if !atClose {
			var id uint64
			if _, err := b.tryTurn(func() { id = b.put(engine.Spec{}, 100) }); err == nil || b.log.rewrite == nil {
				t.Fatalf("the damage was not noticed: %v", err)
			}
			b.left = append(b.left, id)
			b.idle()
			b.kill(t)
		}
		if err := b.log.Close(); err != nil {
			t.Fatal(err)
		}
		b.kill(t)
		b.reopen(b.disk) // for the bench's check at the end
	}
}

// The journal rewrites many jobs in slices, while others are put and deleted. The health
// reports the lost file until the end. On a full disk the rewrite is tried again once a
// second, and the health reports that.
func TestRewriteInSlices(t *testing.T) {
	const jobs, size = 20000, 100
	b := newSickBench(t)
	var ids []uint64
	for range jobs {
		ids = append(ids, b.put(engine.Spec{}, size))
		if len(ids)%100 == 0 {
			b.turn(func() {})
		}
	}
	if err := b.disk.Remove("/" + wal.FileName(b.log.Stats().Current)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.tryTurn(func() { ids = append(ids, b.put(engine.Spec{}, size)) }); err == nil {
		t.Fatal("the damage was not noticed")
	}
	b.fsys.Set(faultfs.Fault{Op: faultfs.Create, Sticky: true, Err: syscall.ENOSPC})
	for b.log.health.errs[uncleaned] == nil {
		b.turn(func() {})
	}
	b.wantHealth("rewriting the damaged journal")
	for range 10 {
		b.log.preparer.failedAt = b.now // the background goroutine does not retry either
		fired := b.fsys.Fired()
		if b.log.rewrite.step(b.now); b.fsys.Fired() > fired {
			t.Error("it is tried again before a second is over")
		}
	}
	b.fsys.Set()
	b.now += healPause
	b.turn(func() {}) // lets the journal notice the free space
	turns, written := 0, b.log.Stats().Written
	for ; b.log.rewrite != nil; turns++ {
		if b.log.Stats().Health == nil {
			t.Fatalf("in turn %d the health reports no problem", turns)
		}
		b.turn(func() {
			b.eng.Delete(b.s, ids[0])
			ids = append(ids[1:], b.put(engine.Spec{}, size))
		})
		if turns == 0 {
			b.wantHealth("rewriting the damaged journal")
			b.wantSaid("journal compaction works again", 1)
		}
		if bytes := int64(b.log.Stats().Written-written) * wal.Cost(size); bytes > rewriteStep+4<<10 {
			t.Fatalf("turn %d wrote %d bytes", turns, bytes)
		}
		written = b.log.Stats().Written
	}
	if turns < jobs*size/rewriteStep {
		t.Errorf("that took %d turns only", turns)
	}
	b.wantHealth("")
	b.turn(func() {})
	after := engine.New(engine.Options{Logged: true})
	if report, err := Load(b.disk, "/", after, 0); err != nil || report.Jobs != len(ids) {
		t.Errorf("%d jobs, want %d: %v", report.Jobs, len(ids), err)
	}
	for _, id := range ids {
		if _, ok := after.Snapshot(id); !ok {
			t.Fatalf("job %d is lost", id)
		}
	}
}
