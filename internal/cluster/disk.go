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
	begun int64 // start of the current batch, on Options.Now, or 0
	bytes int64 // size of the batch's entries
	wake  chan struct{}
	used  chan struct{} // signals prepare

	lowOnSpace bool     // the journal has no space for jobs
	cutTo      uint64   // the journal durably contains the entries up to this one
	pending    []uint64 // indexes of role changes that are not recorded yet; no cut goes beyond the first

	warnOnce rate.Sometimes // limits warnings about missing segments; owned by prepare
}

// diskWork is work that the raft loop requests.
type diskWork struct {
	writes []core.Write
	record func() error // called after the writes; repeated if it fails; can be nil
	isLast bool         // the member stops with record
}

func newDisk(m *Member) *disk {
	return &disk{m: m, wake: make(chan struct{}, 1), used: make(chan struct{}, 1), warnOnce: rate.Sometimes{Interval: time.Minute}}
}

func (d *disk) add(w diskWork) {
	d.mu.Lock()
	d.waits = append(d.waits, w)
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
		batch, lowOnSpace := d.waits, d.lowOnSpace
		d.waits = nil
		d.mu.Unlock()
		if !d.write(batch) {
			return
		}
		if lowOnSpace {
			d.makeRoom()
		}
		signal(d.used)
	}
}

// prepare creates segments of the log in advance, in its own goroutine, so that appends
// do not wait for new segments.
func (d *disk) prepare() {
	for {
		select {
		case <-d.used:
		case <-d.m.Failed():
			return
		}
		if err := d.m.log.Prepare(); err != nil { // on a full disk, it fails repeatedly
			d.warnOnce.Do(func() { d.m.opt.Logger.Warn("cannot create a segment of the cluster's log ahead of time", "err", err) })
		}
	}
}

// write writes a batch and syncs the log if a response requires it. It returns false if the
// member has stopped, or stops with the batch.
func (d *disk) write(batch []diskWork) bool {
	d.setBegun(d.m.opt.Now(), batch)
	defer d.setBegun(0, nil)
	var responses []*raftpb.Message
	installDue := false
	for _, w := range batch {
		if !d.append(w) {
			return false
		}
		for _, write := range w.writes {
			responses = append(responses, write.Responses...)
			installDue = installDue || write.Snapshot != nil
		}
	}
	if (len(responses) > 0 || installDue) && d.try(d.m.log.Sync) {
		d.m.mail.post(func() { d.m.raft.core.Done(responses) })
		if installDue {
			d.m.installDue.Store(true)
			signal(d.m.turns)
		}
	}
	return true
}

// append appends w. It returns false if no append can follow, because the member has
// stopped or stops with w. A later append could contain an older membership, which would
// make the server a member again.
func (d *disk) append(w diskWork) bool {
	for _, write := range w.writes { // one at a time, because a write can override entries of the previous one
		if s := write.Snapshot; s != nil && !d.try(func() error { return d.restore(s) }) {
			return false
		}
		if !d.try(func() error { return d.m.log.Append(write.Hard, write.Entries) }) {
			return false
		}
	}
	return (w.record == nil || d.try(w.record)) && !w.isLast
}

// setMembership records the members after a change. A removed voter must never count
// again, even after a crash of this member.
func (d *disk) setMembership(with raftlog.Membership) {
	d.mu.Lock()
	d.pending = append(d.pending, with.RolesIndex)
	d.mu.Unlock()
	d.add(diskWork{record: func() error {
		if err := errors.Join(d.m.log.SetMembership(with), d.m.log.Sync()); err != nil {
			return err
		}
		d.mu.Lock()
		d.pending = slices.DeleteFunc(d.pending, func(index uint64) bool { return index <= with.RolesIndex })
		d.mu.Unlock()
		d.m.wake()
		return nil
	}})
}

// setLowOnSpace stores whether the journal, which shares the disk, has no space for jobs.
func (d *disk) setLowOnSpace(lowOnSpace bool) {
	d.mu.Lock()
	d.lowOnSpace = lowOnSpace
	d.mu.Unlock()
	signal(d.wake)
}

// cut removes entries from the start of the log up to index, which the journal durably
// contains. It keeps those that other members still need: all members have the log up to
// minMatch, and all reachable members up to minReachable.
func (d *disk) cut(index, minMatch, minReachable uint64) {
	d.mu.Lock()
	d.cutTo = max(d.cutTo, index)
	d.mu.Unlock()
	d.add(diskWork{record: func() error {
		log, keep := d.m.log, d.m.opt.Keep
		return d.cutAt(min(index, max(minMatch, min(minReachable, log.Beyond(keep)), log.Beyond(keptNear*keep))))
	}})
}

// makeRoom cuts the log at the last entry that is durable in the journal, even if a
// member lacks earlier entries. Only this frees space when the log has filled the disk.
func (d *disk) makeRoom() {
	d.mu.Lock()
	index := d.cutTo
	if len(d.pending) > 0 {
		index = min(index, d.pending[0]-1)
	}
	d.mu.Unlock()
	log := d.m.log
	err := d.cutAt(index)
	for range 2 { // the cut becomes durable first; the next flush passes the files to remove to Prepare
		err = errors.Join(err, log.Recover(), log.Prepare())
	}
	if err != nil {
		d.m.opt.Logger.Debug("no disk space yet for the cluster's log", "cut", index, "err", err)
	}
}

// cutAt cuts the log at an entry if that frees space.
func (d *disk) cutAt(index uint64) error {
	log := d.m.log
	if !log.Frees(index) {
		return nil
	}
	term, err := log.Term(index)
	if err != nil {
		return nil // the log is already cut there
	}
	return log.Cut(raftlog.Position{Index: index, Term: term})
}

const keptNear = 4

// recoverPause is the pause between two attempts to write after an error.
const recoverPause = time.Second

// try calls do until it succeeds. Until then, the member acknowledges no change. It
// returns false if the member stops first.
func (d *disk) try(do func() error) bool {
	err := do()
	if err == nil {
		return true
	}
	m := d.m
	m.ails.update(func(a *ailments) { a.log = err })
	m.opt.Logger.Error("cannot write the cluster's log; this member acknowledges no changes until it can", "err", err)
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
				m.opt.Logger.Info("writing the cluster's log again")
				return true
			}
		}
		m.opt.Logger.Debug("still cannot write the cluster's log", "err", err)
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

// lasts returns the duration of the current batch, in nanoseconds, and the size of its
// entries.
func (d *disk) lasts(now int64) (since, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == 0 {
		return 0, 0
	}
	return now - d.begun, d.bytes
}
