package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// A trouble is what a disk has: it hangs, or is full.
type trouble struct {
	mu    sync.Mutex
	until chan struct{}                   // nil: nothing waits
	waits func(name string) bool          // writes to such a file wait; nil: syncs of all do
	bad   func(name string) bool          // such a file cannot be opened for reading; nil: all can
	full  func(name string) bool          // such a file cannot be made, or become larger; nil: all can
	late  func(name string) time.Duration // a sync of such a file is answered so much too soon; nil: none is
	pace  int64                           // bytes that are written in a second; 0: no limit
	ready time.Time                       // when all is written that was begun; with pace
}

// slow lets the disk write so many bytes a second.
func (h *trouble) slow(pace int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = pace
}

// write takes the time that so many bytes take.
func (h *trouble) write(bytes int) {
	h.mu.Lock()
	if h.pace == 0 {
		h.mu.Unlock()
		return
	}
	if now := time.Now(); h.ready.Before(now) {
		h.ready = now
	}
	h.ready = h.ready.Add(time.Duration(int64(bytes) * int64(time.Second) / h.pace))
	ready := h.ready
	h.mu.Unlock()
	time.Sleep(time.Until(ready))
}

// hang lets the writes to some files wait, or, with nil, the syncs of all.
func (h *trouble) hang(writes func(name string) bool) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until, h.waits = make(chan struct{}), writes
	return h.goOn
}

// goOn ends what hang has begun, if it has not ended yet.
func (h *trouble) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until != nil {
		close(h.until)
		h.until = nil
	}
}

// spoil lets some files be unreadable; nil: none is.
func (h *trouble) spoil(bad func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = bad
}

// fill leaves no room for some files; nil: all have room.
func (h *trouble) fill(full func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
}

// wait waits if a sync hangs or, with a name, a write.
func (h *trouble) wait(name string) {
	h.mu.Lock()
	until := h.until
	if name != "" && (h.waits == nil || !h.waits(name)) || name == "" && h.waits != nil {
		until = nil
	}
	h.mu.Unlock()
	if until != nil {
		<-until
	}
}

func (h *trouble) room(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full != nil && h.full(name) {
		return syscall.ENOSPC
	}
	return nil
}

// troubledFS is a disk that has trouble.
type troubledFS struct {
	vfs.FS
	*trouble
}

type troubledFile struct {
	vfs.File
	*trouble
	name string
}

func (f *troubledFile) Sync() error {
	f.wait("")
	if f.late != nil {
		if d := f.late(f.name); d > 0 {
			time.AfterFunc(d, func() { f.File.Sync() }) // it may be closed by then
			return nil
		}
	}
	return f.File.Sync()
}

func (f *troubledFile) WriteAt(b []byte, at int64) (int, error) {
	f.wait(f.name)
	size, err := f.File.Size()
	if err == nil && at+int64(len(b)) > size {
		err = f.room(f.name)
	}
	if err != nil {
		return 0, err
	}
	f.write(len(b))
	return f.File.WriteAt(b, at)
}

func (d *troubledFS) Create(name string) (vfs.File, error) {
	if err := d.room(name); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name)
	return d.file(name, f, err)
}

func (d *troubledFS) Open(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bad != nil && d.bad(name) {
		return nil, syscall.EIO
	}
	return d.FS.Open(name)
}

func (d *troubledFS) OpenWrite(name string) (vfs.File, error) {
	f, err := d.FS.OpenWrite(name)
	return d.file(name, f, err)
}

func (d *troubledFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &troubledFile{f, d.trouble, name}, nil
}

// diskOn returns the append goroutine's part of a member whose log is in a file system, until ctx is done.
func diskOn(ctx context.Context, t *testing.T, fs vfs.FS) (*disk, *raftlog.Log) {
	log, err := raftlog.Open(fs, "/", raftlog.Options{SegmentSize: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Logger: slog.New(slog.DiscardHandler), Now: func() int64 { return 1 }}
	return newDisk(&Member{opt: opt, log: log, lifecycle: lifecycle{ctx: ctx}}), log
}

func writes(all ...core.Write) diskWork { return diskWork{writes: all} }

// entryOf is the write of an entry without data.
func entryOf(index, term uint64) core.Write {
	return core.Write{
		Hard:    &raftpb.HardState{Term: &term, Vote: new(uint64), Commit: new(uint64)},
		Entries: []*raftpb.Entry{{Index: &index, Term: &term}},
	}
}

// Entries that override others are written, whichever call of the disk fails.
func TestFailWhileOverriding(t *testing.T) {
	for n := 1; ; n++ {
		fs := faultfs.New(memfs.New(), faultfs.Fault{Op: faultfs.Write, N: n})
		d, log := diskOn(t.Context(), t, fs)
		d.write([]diskWork{writes(entryOf(1, 1), entryOf(2, 1)), writes(entryOf(3, 1), entryOf(1, 2))})
		if last := log.Last(); last != (raftlog.Position{Index: 1, Term: 2}) {
			t.Errorf("when call %d fails the log ends with %v", n, last)
		}
		failed := fs.Fired() > 0
		fs.Set()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if !failed {
			break
		}
	}
}

// A member that ends while its disk fails writes nothing after what it could not write.
func TestEndWhileFailing(t *testing.T) {
	for range 20 { // it may choose between its end and what waits
		synctest.Test(t, func(t *testing.T) {
			fs := faultfs.New(memfs.New())
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			d, log := diskOn(ctx, t, fs)
			go func() { d.run(); close(ended) }()
			fs.Set(faultfs.Fault{Op: faultfs.Write, N: 1, Sticky: true})
			d.add(writes(entryOf(1, 1)))
			time.Sleep(time.Second)
			d.add(writes(entryOf(2, 1)))
			stop()
			<-ended
			if last := log.Last(); last.Index != 0 {
				t.Errorf("the log ends with %v", last)
			}
			log.Close()
		})
	}
}

// A leader whose disk hangs commits with the disks of the others, hands the leadership over, and comes back when its
// disk does. The disk of a follower holds nobody up.
func TestDiskHangs(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		end := w.machineOf(l).trouble.hang(nil)
		began := time.Now()
		for time.Since(began) < 500*time.Millisecond {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "while the leader's disk hangs")
			w.must(err)
		}
		if w.leader() != l {
			t.Error("the leader did not even wait half a second for its disk")
		}
		w.until("another one leads", func() bool { m := w.whoLeads(); return m != nil && m != l })
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the leader kept the leadership for %v of fake time", took)
		}
		for range 50 { // the disk of a follower hangs
			_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "while a follower's disk hangs")
			w.must(err)
		}
		end()
	})
}

// A job that all disks take seconds for is put, and the leader goes on to lead.
func TestLargeJobOnSlowDisks(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		for _, m := range w.machines {
			m.trouble.slow(10 << 20)
		}
		for range 2 { // the second time the journal waits for the end of the first
			if _, err := w.put(l, "mail", engine.Spec{TTR: 60}, strings.Repeat("x", 12<<20)); err != nil || w.leader() != l {
				t.Errorf("%v; another one leads: %v", err, w.leader() != l)
			}
		}
		time.Sleep(3 * time.Second)
		if w.leader() != l {
			t.Error("another one leads")
		}
	})
}

// A leader whose disk hangs for moments hands the leadership over once: what comes soon after, it bears.
func TestDiskHangsAgain(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		leadsAfter := func(d time.Duration) bool {
			t.Helper()
			end := w.machineOf(l).trouble.hang(isOfLog)
			for began := time.Now(); time.Since(began) < d; time.Sleep(10 * time.Millisecond) {
				w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "while the disk hangs") // it may fail
			}
			end()
			leads := w.leader() == l
			time.Sleep(3 * time.Second)
			if w.leader() != l {
				w.must(w.leader().Transfer(t.Context(), l.opt.Self.ID))
			}
			return leads
		}
		for i, c := range []struct {
			hangs time.Duration
			leads bool
		}{{2 * time.Second, false}, {2 * time.Second, true}, {5 * time.Second, false}} {
			if leads := leadsAfter(c.hangs); leads != c.leads {
				t.Errorf("hang %d, of %v: it leads: %v", i+1, c.hangs, leads)
			}
		}
		l.inLoop(func() { l.raft.health.yieldedAt -= yieldAgain })
		if leadsAfter(2 * time.Second) {
			t.Error("it leads when its disk hangs after a long time")
		}
	})
}

// A leader whose disk hangs, and that has nobody to hand over to, acknowledges nothing until its disk comes back.
func TestOnlyDiskHangs(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		end := w.machines[0].trouble.hang(nil)
		put := make(chan error)
		go func() {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "while the only disk hangs")
			put <- err
		}()
		time.Sleep(5 * time.Second)
		if w.acknowledged() > 0 {
			t.Error("a put was acknowledged that is on no disk")
		}
		end()
		w.must(<-put)
	})
}

// A leader whose writes hang is replaced as soon as one whose syncs do: of the journal, for which its turns wait, although Raft's log
// is written; and of Raft's log.
func TestWritesHang(t *testing.T) {
	for name, waits := range map[string]func(name string) bool{"of the journal": isOfJournal, "of the log": isOfLog} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(t *testing.T, w *world) {
				time.Sleep(time.Second)
				l := w.leader()
				end := w.machineOf(l).trouble.hang(waits)
				began := time.Now()
				for range 3 {
					go w.put(l, "mail", engine.Spec{TTR: 60}, "while the leader's writes hang") // it may fail
				}
				w.until("another one leads", func() bool { m := w.whoLeads(); return m != nil && m != l })
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the leader kept the leadership for %v of fake time", took)
				}
				for range 50 {
					_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "while a follower's writes hang")
					w.must(err)
				}
				end()
			})
		})
	}
}

// A leader that waits for another segment of its journal, before it executes a command, is replaced too.
func TestNewSegmentHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		time.Sleep(time.Second)
		l := w.leader()
		m := w.machineOf(l)
		names, err := m.disk.List(dir)
		w.must(err)
		end := m.trouble.hang(func(name string) bool {
			return isOfJournal(name) && !slices.Contains(names, filepath.Base(name))
		})
		stop := w.load(3)
		for range 20 {
			go w.put(l, "mail", engine.Spec{TTR: 60}, large) // it may fail
		}
		w.until("another one leads", func() bool { m := w.whoLeads(); return m != nil && m != l })
		end()
		stop()
		w.audit()
		w.close()
	})
}

// When the disks of all are full each lets another one lead once, and then they stay.
func TestAllDisksAreFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		for _, m := range w.machines {
			m.trouble.fill(isOfJournal)
		}
		epochs := map[uint64]bool{} // by term
		for began := time.Now(); time.Since(began) < 4*time.Minute; time.Sleep(20 * time.Millisecond) {
			l := w.leader()
			epochs[l.Lead().Term] = true
			w.put(l, "mail", engine.Spec{TTR: 60}, large) // it may be refused
		}
		if n := len(epochs); n < 2 || n > 4 {
			t.Errorf("there were %d epochs, with three members", n)
		}
		for _, m := range w.machines {
			m.trouble.fill(nil)
		}
	})
}

// When the disks of a majority are full puts and deletes wait, and when they have room all go on by themselves.
func TestMostDisksAreFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		for range 10 {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "while there is room")
			w.must(err)
		}
		for _, m := range w.machines {
			if m.member != l {
				m.trouble.fill(func(string) bool { return true })
			}
		}
		const puts = 500 // more than the files have room for
		ended := make(chan error)
		for range puts {
			go func() {
				_, err := w.put(l, "mail", engine.Spec{TTR: 60}, large)
				ended <- err
			}()
		}
		waiting := puts
		for began := time.Now(); time.Since(began) < 30*time.Second; {
			select {
			case err := <-ended:
				w.must(err)
				waiting--
			case <-time.After(time.Second):
			}
		}
		if waiting == 0 {
			t.Fatal("no put waits")
		}
		deleted := make(chan error)
		go func() { deleted <- w.delete(l) }()
		select {
		case err := <-ended:
			t.Errorf("a put is answered: %v", err)
		case err := <-deleted:
			t.Errorf("a delete is answered: %v", err)
		case <-time.After(time.Minute):
		}
		if w.leader() != l {
			t.Error("another one leads, whose disk is full")
		}
		for _, m := range w.machines {
			m.trouble.fill(nil)
		}
		for range waiting {
			w.must(<-ended)
		}
		w.must(<-deleted)
	})
}

// A leader whose disk is full again soon after it had room lets another one lead again.
func TestDiskIsFullAgain(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		m := w.machineOf(l)
		for range 3 {
			m.trouble.fill(isOfJournal)
			w.until("another one leads", func() bool {
				w.put(l, "mail", engine.Spec{TTR: 60}, large) // it may be refused
				leader := w.whoLeads()
				return leader != nil && leader != l
			})
			m.trouble.fill(nil)
			time.Sleep(3 * time.Second)
			w.must(w.leader().Transfer(t.Context(), m.id))
			w.until("it leads again", func() bool { return w.whoLeads() == l })
		}
	})
}

// large is the body of a job, of which few fill a segment.
var large = strings.Repeat("x", 4<<10)

// A leader whose disk is full lets another member lead, which has room.
func TestDiskIsFull(t *testing.T) {
	for name, full := range map[string]func(name string) bool{
		"all of it":              func(string) bool { return true },
		"for the journal":        isOfJournal,
		"for the log of entries": isOfLog,
		"but for moments": func(name string) bool { // as when the journal is cleaned
			return isOfJournal(name) && time.Now().UnixMilli()%800 > 30
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(t *testing.T, w *world) {
				time.Sleep(time.Second)
				l := w.leader()
				of := &w.machineOf(l).trouble
				of.fill(full)
				w.until("another one leads", func() bool {
					w.put(l, "mail", engine.Spec{TTR: 60}, large) // it may be refused
					m := w.whoLeads()
					return m != nil && m != l
				})
				for range 50 {
					_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, large)
					w.must(err)
				}
				of.fill(nil)
			})
		})
	}
}

// A member is not ready whose journal has not taken for 10 s what was agreed on.
func TestLagging(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		l := w.leader()
		full := w.machines[0]
		if full.member == l {
			full = w.machines[1]
		}
		w.must(full.member.Ready())
		full.trouble.fill(isOfJournal)
		for range 200 { // more than its segments have room for
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, large)
			w.must(err)
		}
		time.Sleep(5 * time.Second)
		w.must(full.member.Ready())
		time.Sleep(6 * time.Second)
		if err := full.member.Ready(); err == nil || !strings.Contains(err.Error(), " s behind") {
			t.Errorf("ready: %v", err)
		}
		w.must(l.Ready())
		full.trouble.fill(nil)
		w.until("it is ready again", func() bool { return full.member.Ready() == nil })
	})
}

func isOfJournal(name string) bool { return !isOfLog(name) }

func isOfLog(name string) bool { return strings.Contains(name, "/cluster/") }

// A member whose journal is full may win an election. As it cannot serve it lets another one lead.
func TestFullMemberIsElected(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	won := false
	for seed := uint64(0); seed < 8 || !won && seed < 64; seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 3)
			time.Sleep(time.Second)
			l := w.leader()
			full := w.machines[0]
			if full.member == l {
				full = w.machines[1]
			}
			full.trouble.fill(isOfJournal)
			for range 200 { // more than its segments have room for
				_, err := w.put(l, "mail", engine.Spec{TTR: 60}, large)
				w.must(err)
			}
			w.machineOf(l).kill(false)
			w.until("the member that has room leads", func() bool {
				s, err := full.member.Status()
				w.must(err)
				won = won || s.Leader == full.id
				m := w.whoLeads()
				return m != nil && m != full.member
			})
			_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, large)
			w.must(err)
			full.trouble.fill(nil)
			w.machineOf(l).boot()
			w.audit()
			w.close()
		})
	}
	if !won {
		t.Error("the full member was never elected")
	}
}
