package tubes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Calls share a survey until it is too old, has failed, or a change has been made, also
// during the survey.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Cache[Tube]
		surveys := 0
		var failed error
		during := func() {}
		each := func() error {
			return s.Each(t.Context(), time.Second, func(context.Context, func(*Tube)) error { surveys++; during(); return failed }, nil)
		}
		want := func(n int, when string) {
			t.Helper()
			if err := each(); err != failed || surveys != n {
				t.Errorf("%s: %d surveys, want %d; %v", when, surveys, n, err)
			}
		}
		want(1, "at first")
		want(1, "at once")
		time.Sleep(time.Second)
		synctest.Wait()
		want(2, "later")
		s.Forget()
		during = s.Forget
		want(3, "after a change")
		during = func() {}
		want(4, "after a change during the survey")
		s.Forget()
		failed = errors.New("the server is gone")
		want(5, "failing")
		want(6, "after a failure")
	})
}
