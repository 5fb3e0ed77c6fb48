package tubes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func none(context.Context, func(*Tube)) error { return nil }

// Who waits for the look of another one waits no longer when its client goes.
func TestWaitForLook(t *testing.T) {
	var s Shared[Tube]
	one, isNew := s.take(time.Hour)
	if !isNew {
		t.Fatal("there was one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Each(ctx, time.Hour, none, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(one.done)
	if err := s.Each(t.Context(), time.Hour, none, nil); err != nil {
		t.Error(err)
	}
}

// A look that fails or panics has failed for those who wait for it, and the next one is another.
func TestBrokenLook(t *testing.T) {
	failed := errors.New("the server is gone")
	for _, look := range []func(context.Context, func(*Tube)) error{
		func(context.Context, func(*Tube)) error { return failed },
		func(context.Context, func(*Tube)) error { panic(failed) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var s Shared[Tube]
			begin, waiting := make(chan bool), make(chan error)
			go func() {
				defer func() { recover() }()
				s.Each(t.Context(), time.Hour, func(ctx context.Context, tell func(*Tube)) error {
					<-begin
					return look(ctx, tell)
				}, nil)
			}()
			synctest.Wait()
			go func() { waiting <- s.Each(t.Context(), time.Hour, none, nil) }()
			synctest.Wait()
			close(begin)
			if err := <-waiting; err != failed && err != errBroken {
				t.Errorf("it has not failed: %v", err)
			}
			if _, isNew := s.take(time.Hour); !isNew {
				t.Error("it is still used")
			}
		})
	}
}

// A look is kept no longer than it is of use.
func TestLookIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Shared[Tube]
		s.Each(t.Context(), time.Second, none, nil)
		if _, isNew := s.take(time.Hour); isNew {
			t.Error("it is gone at once")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, isNew := s.take(time.Hour); !isNew {
			t.Error("it is kept")
		}
	})
}
