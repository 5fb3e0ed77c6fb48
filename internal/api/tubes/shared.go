package tubes

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Shared is the last look at all tubes, or all sessions that hold jobs, of a server.
// Callers that accept an older look share it. Its zero value is ready for use.
type Shared[T any] struct {
	mu   sync.Mutex
	last *seen[T] // nil if there is no usable look
}

// A seen is the result of a look.
type seen[T any] struct {
	begun time.Time
	done  chan struct{} // closed when the look has ended
	all   []T
	err   error // the look is not complete
}

// Each calls tell for everything that a look returns, which began no longer ago than an
// age. Concurrent calls share the look of the first, which continues if the client of
// that call disconnects. If the look fails or panics, it fails for all calls that wait
// for it, and for no later call.
func (s *Shared[T]) Each(ctx context.Context, age time.Duration, look func(ctx context.Context, tell func(*T)) error, tell func(*T)) error {
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
	for i := range one.all {
		tell(&one.all[i])
	}
	return one.err
}

// take returns the last look if it began no longer ago than an age, or else a new look.
func (s *Shared[T]) take(age time.Duration) (one *seen[T], isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.begun) > age {
		s.last, isNew = &seen[T]{begun: time.Now(), done: make(chan struct{})}, true
	}
	return s.last, isNew
}

// errBroken is the answer to the calls that waited for a look that panicked.
var errBroken = admin.Problemf(http.StatusInternalServerError, "looking at the queue failed")

func (s *Shared[T]) see(ctx context.Context, one *seen[T], look func(ctx context.Context, tell func(*T)) error) {
	one.err = errBroken
	defer func() {
		if close(one.done); one.err != nil {
			s.drop(one)
		}
	}()
	one.err = look(ctx, func(t *T) { one.all = append(one.all, *t) })
}

func (s *Shared[T]) drop(one *seen[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == one {
		s.last = nil
	}
}

// Forget drops the last look after a change, so that the client sees its change.
func (s *Shared[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}
