package tubes

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Shared is the last look at all tubes of a server, for those who can bear that it is not of just now. Its zero value is ready for use.
type Shared struct {
	mu   sync.Mutex
	last *seen // nil: none that is of use
}

// A seen is what a look has seen.
type seen struct {
	begun time.Time
	done  chan struct{} // closed when it has ended; who comes meanwhile waits
	tubes []Tube
	err   error // not all are there
}

// Each tells of all tubes as they were not longer ago than an age. Several that come at once share the work of the first, which does not
// end when its client goes. If that fails, be it by a panic, it has failed for those who wait for it already, and for nobody else.
func (s *Shared) Each(ctx context.Context, age time.Duration, look func(ctx context.Context, tell func(*Tube)) error, tell func(*Tube)) error {
	one, isNew := s.take(age)
	if isNew {
		s.see(context.WithoutCancel(ctx), one, look)
		time.AfterFunc(age, func() { s.drop(one) }) // it may be large
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range one.tubes {
		tell(&one.tubes[i])
	}
	return one.err
}

// take returns the last look if it began no longer ago than may be, or else a new one.
func (s *Shared) take(age time.Duration) (one *seen, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.begun) > age {
		s.last, isNew = &seen{begun: time.Now(), done: make(chan struct{})}, true
	}
	return s.last, isNew
}

// errBroken is the answer to those who have waited for a look that panicked.
var errBroken = admin.Problemf(http.StatusInternalServerError, "the tubes could not be looked at")

func (s *Shared) see(ctx context.Context, one *seen, look func(ctx context.Context, tell func(*Tube)) error) {
	one.err = errBroken
	defer func() {
		if close(one.done); one.err != nil {
			s.drop(one)
		}
	}()
	one.err = look(ctx, func(t *Tube) { one.tubes = append(one.tubes, *t) })
}

func (s *Shared) drop(one *seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == one {
		s.last = nil
	}
}

// Forget drops the last look: something has changed, and who has changed it wants to see that.
func (s *Shared) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}
