package tubes

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// A Cache keeps the last survey of all tubes, or of all sessions that hold jobs. Callers
// that accept an older survey share it. The zero value is ready for use.
type Cache[T any] struct {
	asked singleflight.Group

	mu      sync.Mutex
	last    *snapshot[T] // nil if there is no usable survey
	changes int          // calls of Forget
}

// A snapshot is the result of a survey.
type snapshot[T any] struct {
	begun time.Time
	all   []T
}

// Each calls tell for all elements of a survey that started at most age ago. Concurrent
// calls share the survey of the first call, which continues if that client disconnects.
func (s *Cache[T]) Each(ctx context.Context, age time.Duration, look func(ctx context.Context, tell func(*T)) error, tell func(*T)) error {
	found, err, _ := s.asked.Do("", func() (any, error) {
		s.mu.Lock()
		one, changes := s.last, s.changes
		s.mu.Unlock()
		if one != nil && time.Since(one.begun) <= age {
			return one, nil
		}
		one = &snapshot[T]{begun: time.Now()}
		if err := look(context.WithoutCancel(ctx), func(t *T) { one.all = append(one.all, *t) }); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.changes == changes {
			s.last = one
			time.AfterFunc(age, func() { s.drop(one) }) // frees its memory
		}
		return one, nil
	})
	if err != nil {
		return err
	}
	all := found.(*snapshot[T]).all
	for i := range all {
		tell(&all[i])
	}
	return nil
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
	s.changes++
	s.asked.Forget("")
}
