package cluster

import (
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A disk is the append goroutine, which writes Raft's log.
type disk struct {
	m *Member

	mu    sync.Mutex
	waits []diskWork
	begun int64 // when the batch under way began, on Options.Now; 0: none is
	bytes int64 // of its entries
	wake  chan struct{}
	used  chan struct{} // prepare has something to do, perhaps

	cramped bool     // the journal has no room for jobs
	cutTo   uint64   // the journal has the entries up to here durably
	pending []uint64 // indexes of changes of the roles that are not recorded yet: no cut goes beyond the first

	said rate.Sometimes // that there is no segment; owned by prepare
}

// diskWork is what the raft loop wants written, in the order of the fields.
type diskWork struct {
	writes       []core.Write
	membership   *raftlog.Membership // or nil
	removed      bool                // this member was
	verdict      string              // why this member must not go on; empty: it may
	peer         *peerRecord         // or nil
	cut          raftlog.Position    // the journal has this durably; zero: no cut
	minMatch     uint64              // all members have the log up to here
	minReachable uint64              // all that can be reached have
}

type peerRecord struct {
	id uint64
	raftlog.Peer
}

func newDisk(m *Member) *disk {
	return &disk{m: m, wake: make(chan struct{}, 1), used: make(chan struct{}, 1), said: rate.Sometimes{Interval: time.Minute}}
}

func (d *disk) add(w diskWork) {
	d.mu.Lock()
	d.waits = append(d.waits, w)
	d.cutTo = max(d.cutTo, w.cut.Index)
	if w.membership != nil {
		d.pending = append(d.pending, w.membership.RolesIndex)
	}
	d.mu.Unlock()
	signal(d.wake)
}

func (d *disk) run() {
	for {
		select {
		case <-d.wake:
		case <-d.m.Failed():
			return
		}
		d.mu.Lock()
		batch, cramped := d.waits, d.cramped
		d.waits = nil
		d.mu.Unlock()
		if !d.write(batch) {
			return
		}
		if cramped {
			d.makeRoom()
		}
		signal(d.used)
	}
}

// prepare makes segments of the log ahead of time, in a goroutine of its own. So no append
// waits while a segment is filled.
func (d *disk) prepare() {
	for {
		select {
		case <-d.used:
		case <-d.m.Failed():
			return
		}
		if err := d.m.log.Prepare(); err != nil { // a full disk does so again and again
			d.said.Do(func() { d.m.opt.Logger.Warn("a segment of the cluster's log cannot be made ahead of time", "err", err) })
		}
	}
}

// write writes a batch, and delivers its responses when it is durable. It returns false
// if the member ends. Then the batch may be incomplete, so nothing may be written after it,
// and no response is delivered.
func (d *disk) write(batch []diskWork) bool {
	d.setBegun(d.m.opt.Now(), batch)
	defer d.setBegun(0, nil)
	var responses []*raftpb.Message
	restored := false
	for _, w := range batch {
		if !d.append(w) {
			return false
		}
		for _, write := range w.writes {
			responses = append(responses, write.Responses...)
			restored = restored || write.Snapshot != nil
		}
	}
	if (len(responses) > 0 || restored) && d.try(d.m.log.Sync) {
		d.m.mail.post(finished{responses})
		if restored {
			d.m.setRestored(true)
		}
	}
	return true
}

// append appends w. It returns false if nothing may be appended after it: the member ended
// before, or ends with w. An older membership would make it a member again.
func (d *disk) append(w diskWork) bool {
	for _, write := range w.writes { // one at a time, as one may override entries of the one before
		if s := write.Snapshot; s != nil && !d.try(func() error { return d.restore(s) }) {
			return false
		}
		if !d.try(func() error { return d.m.log.Append(write.Hard, write.Entries) }) {
			return false
		}
	}
	return d.try(func() error { return d.record(w) }) && !w.isLast()
}

// isLast reports whether the member ends with w.
func (w *diskWork) isLast() bool { return w.removed || w.verdict != "" }

// record records all of w but the writes. After an error the same call does the rest.
func (d *disk) record(w diskWork) error {
	log := d.m.log
	if w.membership != nil {
		// A removed voter must never count again, also after a crash of this member.
		if err := errors.Join(log.SetMembership(*w.membership), log.Sync()); err != nil {
			return err
		}
		d.mu.Lock()
		d.pending = slices.DeleteFunc(d.pending, func(index uint64) bool { return index <= w.membership.RolesIndex })
		d.mu.Unlock()
		d.m.wake()
	}
	if w.isLast() {
		return d.writeVerdict(w)
	}
	if w.peer != nil {
		if err := errors.Join(log.SetPeer(w.peer.id, w.peer.Peer), log.Sync()); err != nil {
			return err
		}
	}
	return d.cut(w)
}

// setCramped notes whether the journal, which is on the same disk, has no room for jobs.
func (d *disk) setCramped(cramped bool) {
	d.mu.Lock()
	d.cramped = cramped
	d.mu.Unlock()
	signal(d.wake)
}

// cut cuts the log, if that frees something. No cut goes beyond the entries that the
// journal has durably. The log keeps entries that a member lacks: Options.Keep bytes for
// members that are away, and keptNear times as much for members that can be reached, so
// that one which receives a snapshot finds the entries after it in the log.
func (d *disk) cut(w diskWork) error {
	log, keep := d.m.log, d.m.opt.Keep
	return d.cutAt(min(w.cut.Index, max(w.minMatch, min(w.minReachable, log.Beyond(keep)), log.Beyond(keptNear*keep))))
}

// makeRoom cuts the log at the last entry that the journal has durably, even if a member
// lacks entries before it. When the log has filled the disk nothing else frees it.
func (d *disk) makeRoom() {
	d.mu.Lock()
	index := d.cutTo
	if len(d.pending) > 0 {
		index = min(index, d.pending[0]-1)
	}
	d.mu.Unlock()
	log := d.m.log
	err := d.cutAt(index)
	for range 2 { // when the cut is durable, the next flush tells Prepare which files are to go
		err = errors.Join(err, log.Recover(), log.Prepare())
	}
	if err != nil {
		d.m.opt.Logger.Debug("there is no room yet for the cluster's log", "cut", index, "err", err)
	}
}

// cutAt cuts the log at an entry, if that frees something.
func (d *disk) cutAt(index uint64) error {
	log := d.m.log
	if !log.Frees(index) {
		return nil
	}
	term, err := log.Term(index)
	if err != nil {
		return nil // it is cut already
	}
	return log.Cut(raftlog.Position{Index: index, Term: term})
}

const keptNear = 4

// recoverPause is the time between two attempts of the disk to write after an error.
const recoverPause = time.Second

// try calls do until it succeeds. Until then the member acknowledges nothing. It returns
// false if the member ends before.
func (d *disk) try(do func() error) bool {
	err := do()
	if err == nil {
		return true
	}
	m := d.m
	m.ails.update(func(a *ailments) { a.log = err })
	m.opt.Logger.Error("the cluster's log cannot be written: this member acknowledges nothing until it can", "err", err)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-m.Failed():
			return false
		}
		full := raftlog.IsFull(err)
		if err = m.log.Recover(); err == nil {
			if full {
				d.makeRoom()
			}
			if err = do(); err == nil {
				m.ails.update(func(a *ailments) { a.log = nil })
				m.opt.Logger.Info("the cluster's log is written again")
				return true
			}
		}
		m.opt.Logger.Debug("the cluster's log cannot be written yet", "err", err)
		pause.Reset(recoverPause)
	}
}

func (d *disk) setBegun(at int64, batch []diskWork) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun, d.bytes = at, 0
	for _, w := range batch {
		for _, write := range w.writes {
			for _, e := range write.Entries {
				d.bytes += int64(len(e.GetData()))
			}
		}
	}
}

// lasts returns for how long the present batch has been under way, in nanoseconds, and
// the size of its entries.
func (d *disk) lasts(now int64) (since, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == 0 {
		return 0, 0
	}
	return now - d.begun, d.bytes
}
