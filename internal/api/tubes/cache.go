package tubes

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Cache keeps the last survey of all tubes, or of all sessions that hold jobs. Callers
// that accept an older survey share it. The zero value is ready for use.
type Cache[T any] struct {
	mu   sync.Mutex
	last *snapshot[T] // nil if there is no usable survey
}

// A snapshot is the result of a survey.
type snapshot[T any] struct {
	begun time.Time
	done  chan struct{} // closed when the survey has ended
	all   []T
	err   error // set if the survey is incomplete
}

// Each calls tell for all elements of a survey that started at most age ago. Concurrent
// calls share the survey of the first call, which continues if the first client
// disconnects. If the survey fails or panics, all waiting calls fail, but no later call.
func (s *Cache[T]) Each(ctx context.Context, age time.Duration, look func(ctx context.Context, tell func(*T)) error, tell func(*T)) error {
	one, isNew := s.take(age)
	if isNew {
		s.see(context.WithoutCancel(ctx), one, look)
		time.AfterFunc(age, func() { s.drop(one) }) // frees its memory
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

// take returns the last survey if it started at most age ago, and otherwise a new one.
func (s *Cache[T]) take(age time.Duration) (one *snapshot[T], isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.begun) > age {
		s.last, isNew = &snapshot[T]{begun: time.Now(), done: make(chan struct{})}, true
	}
	return s.last, isNew
}

// errBroken is the error of calls that waited for a survey that panicked.
var errBroken = admin.Problemf(http.StatusInternalServerError, "the survey of the queue failed")

func (s *Cache[T]) see(ctx context.Context, one *snapshot[T], look func(ctx context.Context, tell func(*T)) error) {
	one.err = errBroken
	defer func() {
		if close(one.done); one.err != nil {
			s.drop(one)
		}
	}()
	one.err = look(ctx, func(t *T) { one.all = append(one.all, *t) })
}

func (s *Cache[T]) drop(one *snapshot[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == one {
		s.last = nil
	}
}

// Forget drops the last survey. It must be called after a change, so that clients see
// their changes.
func (s *Cache[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}
