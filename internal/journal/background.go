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
	err  error // of the last one
	wg   sync.WaitGroup
}

// start runs f unless one is running.
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

// running tells whether a function is running.
func (b *background) running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// ended returns the error of the last function, once, or that it is still running.
func (b *background) ended() (busy bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err, b.err = b.err, nil
	return b.busy, err
}

func (b *background) wait() { b.wg.Wait() }

// A syncing syncs what is flushed, unless Options.Sync is 0.
type syncing struct {
	background
	files    *wal.Log
	health   *health
	every    time.Duration // Options.Sync
	most     int64         // so many bytes may wait for a sync
	last     int64         // when the last sync was started, on the engine's clock
	unsynced int64         // bytes flushed since
}

// unsyncedShare: a sync in the background begins when this part of a segment is not
// synced, an eighth. A full segment is synced within a turn; this keeps that short.
const unsyncedShare = 8

// step starts a sync in the background when it is time for one, or when much is
// not synced, and checks the result of the one before.
func (s *syncing) step(now int64) (next int64) {
	if s.every == 0 {
		return engine.Never
	}
	busy, err := s.ended()
	if err != nil {
		if err := s.files.Flush(); err != nil { // nil if the log has healed meanwhile
			s.health.has(broken, err)
			return now
		}
	}
	if !busy && s.unsynced > s.most {
		s.begin(now)
		busy = true
	}
	if s.every < 0 {
		if busy {
			return now + healPause // to see the result
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

func (s *syncing) begin(now int64) {
	s.start(s.files.Target().Sync)
	s.last, s.unsynced = now, 0
}

// durable tells whether a record is durable. If nothing else will sync it soon, it
// starts a sync in the background. While the journal is dirty it waits for the Flush.
func (s *syncing) durable(at wal.Pos, dirty bool) bool {
	if at.Compare(s.files.Durable()) < 0 {
		return true
	}
	if !dirty && s.every < 0 && !s.running() {
		s.start(s.files.Target().Sync)
	}
	return false
}

// awaitRemovals schedules a sync if the removal of a segment waits for one.
func (s *syncing) awaitRemovals(now int64, dirty bool) (next int64) {
	at, removing := s.files.RemovalPending()
	if removing && s.durable(at, dirty) {
		_, removing = s.files.RemovalPending()
	}
	if removing {
		return now + max(cleanPause, int64(s.every))
	}
	return engine.Never
}

// A preparing preallocates segments.
type preparing struct {
	background
	files    *wal.Log
	health   *health
	failedAt int64 // when it failed last; 0: it has not
}

// step preallocates segments in the background. After an error it tries again a second
// later; if the room is needed before, the command gets the error. While there is something
// to do it asks for another call, to see the result.
func (p *preparing) step(now int64) (next int64) {
	if !p.files.NeedsPrepare() {
		p.health.ended(unprepared)
		return engine.Never
	}
	busy, err := p.ended()
	switch {
	case err != nil:
		p.failedAt = now
		if !wal.NoRoom(err) { // a full disk is reported when that matters
			p.health.has(unprepared, err)
		}
	case !busy && p.failedAt == 0: // it worked, though there is something to do again
		p.health.ended(unprepared)
	}
	retry := now + healPause // to see the result, sooner if that may be good news
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
