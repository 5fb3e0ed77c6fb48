package tubes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func none(context.Context, func(*Tube)) error { return nil }

// A call that waits for another call's survey ends with its own context.
func TestWaitForSurvey(t *testing.T) {
	var s Cache[Tube]
	one, isNew := s.take(time.Hour)
	if !isNew {
		t.Fatal("an unexpected survey exists")
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

// A survey that fails or panics fails for all waiting calls, but not for later ones.
func TestBrokenSurvey(t *testing.T) {
	failed := errors.New("the server is gone")
	for _, look := range []func(context.Context, func(*Tube)) error{
		func(context.Context, func(*Tube)) error { return failed },
		func(context.Context, func(*Tube)) error { panic(failed) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var s Cache[Tube]
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
				t.Errorf("the survey did not fail: %v", err)
			}
			if _, isNew := s.take(time.Hour); !isNew {
				t.Error("it is still used")
			}
		})
	}
}

// A survey is dropped when it is too old.
func TestSurveyIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Cache[Tube]
		s.Each(t.Context(), time.Second, none, nil)
		if _, isNew := s.take(time.Hour); isNew {
			t.Error("the survey was dropped at once")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, isNew := s.take(time.Hour); !isNew {
			t.Error("it is kept")
		}
	})
}
