package journal

import (
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// background runs one function at a time in a goroutine.
type background struct {
	mu   sync.Mutex
	busy bool
	err  error // error of the last function
	wg   sync.WaitGroup
}

// start runs f unless a function is running.
func (b *background) start(f func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return
	}
	b.busy = true
	b.wg.Go(func() {
		err := f()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy, b.err = false, err
	})
}

// isRunning reports whether a function is running.
func (b *background) isRunning() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// result reports whether a function is running. Otherwise it returns the error of the
// last function, once.
func (b *background) result() (busy bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err, b.err = b.err, nil
	return b.busy, err
}

func (b *background) wait() { b.wg.Wait() }

// A syncer makes flushed records durable in the background, unless Options.Sync is 0.
type syncer struct {
	background
	files    *wal.Log
	health   *health
	every    time.Duration // Options.Sync
	most     int64         // maximum number of unsynced bytes
	last     int64         // start of the last sync, on the engine's clock
	unsynced int64         // bytes flushed since that sync
}

// unsyncedShare limits the unsynced bytes to an eighth of a segment; beyond it, a sync in
// the background starts. A full segment is synced within a turn, and the limit keeps that
// sync short.
const unsyncedShare = 8

// step starts a sync in the background if it is due or many bytes are not synced, and
// checks the result of the previous sync.
func (s *syncer) step(now int64) (next int64) {
	if s.every == 0 {
		return engine.Never
	}
	busy, err := s.result()
	if err != nil {
		if err := s.files.Flush(); err != nil { // nil if the log has healed
			s.health.set(broken, err)
			return now
		}
	}
	if !busy && s.unsynced > s.most {
		s.begin(now)
		busy = true
	}
	if s.every < 0 {
		if busy {
			return now + healPause // in order to check the result
		}
		return engine.Never
	}
	due := s.last + int64(s.every)
	switch {
	case busy:
		return now + int64(s.every)
	case s.unsynced == 0:
		return engine.Never
	case now < due:
		return due
	}
	s.begin(now)
	return now + int64(s.every)
}

func (s *syncer) begin(now int64) {
	s.start(s.files.Target().Sync)
	s.last, s.unsynced = now, 0
}

// durable reports whether a record is durable. If it is not, and no other sync is near,
// durable starts a sync in the background. While the journal is dirty, it leaves that to
// Flush.
func (s *syncer) durable(at wal.Pos, dirty bool) bool {
	if at.Compare(s.files.Durable()) < 0 {
		return true
	}
	if !dirty && s.every < 0 && !s.isRunning() {
		s.start(s.files.Target().Sync)
	}
	return false
}

// awaitRemovals schedules a sync if the removal of a segment waits for one.
func (s *syncer) awaitRemovals(now int64, dirty bool) (next int64) {
	at, removing := s.files.RemovalPending()
	if removing && s.durable(at, dirty) {
		_, removing = s.files.RemovalPending()
	}
	if removing {
		return now + max(cleanPause, int64(s.every))
	}
	return engine.Never
}

// A preparer preallocates segments.
type preparer struct {
	background
	files    *wal.Log
	health   *health
	failedAt int64 // time of the last failure, or 0
}

// step preallocates segments in the background. After an error, it retries a second
// later; a command that needs the space earlier gets the error. While there is work, it
// requests another call to check the result.
func (p *preparer) step(now int64) (next int64) {
	if !p.files.NeedsPrepare() {
		p.health.clear(unprepared)
		return engine.Never
	}
	busy, err := p.result()
	switch {
	case err != nil:
		p.failedAt = now
		if !wal.NoRoom(err) { // a full disk is reported when it refuses a record
			p.health.set(unprepared, err)
		}
	case !busy && p.failedAt == 0: // the preparer has succeeded, although there is more to do
		p.health.clear(unprepared)
	}
	retry := now + healPause // in order to check the result, sooner if it can clear an error
	if p.health.errs[unprepared] != nil {
		retry = now + cleanPause
	}
	switch {
	case busy:
	case p.failedAt != 0 && now < p.failedAt+healPause:
		retry = p.failedAt + healPause
	default:
		p.failedAt = 0
		p.start(p.files.Prepare)
	}
	return retry
}
