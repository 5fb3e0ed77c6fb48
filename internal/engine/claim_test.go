package engine

import "testing"

// A new leader's engine reserves a claimed job again, with its TTR, its attempt and its
// place in max-reserved, and without a Change. Until the claims end, it keeps jobs that
// have used their only attempt.
func TestClaim(t *testing.T) {
	opt := Options{Logged: true, Claims: true, Policies: everyTube(Policy{MaxAttempts: 1, MaxReserved: 2, Interval: 100 * second, Burst: 1})}
	old := New(opt)
	old.EndClaims()
	s := old.Open(nil)
	for range 3 {
		old.Put(0, s, Spec{TTR: 10}, []byte("x"))
	}
	old.Tick(0)
	if _, o := old.Reserve(0, s, 0); o != OK {
		t.Fatal(o)
	}
	old.Tick(4 * second)
	old.Touch(4*second, s, 1)
	old.Tick(6 * second)
	claims := old.Claims(s, 10, nil)
	if want := (Claim{ID: 1, Reserves: 1, For: 6 * second, Left: 8 * second}); len(claims) != 1 || claims[0] != want {
		t.Fatalf("got %+v, want %+v", claims, want)
	}

	const now = 1000 * second // the new engine has another clock
	e := New(opt)
	restoreAll(e, old.TakeChanges())
	e.Tick(now)
	e.Tick(now + 100*second) // runs a sweep
	holder, other := e.Open(nil), e.Open(nil)
	if _, o := e.Reserve(now, other, 0); o != TimedOut {
		t.Errorf("a reserve before the claims: %v", o)
	}
	for _, c := range []struct {
		s    *Session
		c    Claim
		want Outcome
	}{
		{other, Claim{ID: 9, Left: 1}, NotFound},
		{other, Claim{ID: 1, Reserves: 1, For: 10 * second}, TimedOut},
		{holder, claims[0], OK},
		{other, claims[0], Failed}, // a claim of an older reservation
	} {
		if o := e.Claim(now, c.s, c.c); o != c.want {
			t.Errorf("%+v: %v, want %v", c.c, o, c.want)
		}
	}
	if n := e.Promises(); n != 0 {
		t.Errorf("the claims make %d changes", n)
	}
	e.EndClaims()
	st, _ := e.JobStats(now, 1)
	if st.State != Reserved || st.Reserves != 1 || st.TimeLeft != 8 {
		t.Errorf("got %+v", st)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	if _, o := e.Reserve(now, other, 0); o != OK { // the reservation has the current number
		t.Errorf("the second of two jobs: %v", o)
	}
	if _, o := e.Reserve(now+1000*second, e.Open(nil), 0); o != TimedOut { // two jobs are reserved already
		t.Errorf("the third of two jobs: %v", o)
	}
	if o := e.Delete(other, 1); o != NotFound {
		t.Errorf("the delete of another session: %v", o)
	}
	if o := e.Delete(holder, 1); o != OK {
		t.Errorf("the delete of the holder: %v", o)
	}
}

// A session that waits again gets a ready job, or waits until its timeout.
func TestResumeWait(t *testing.T) {
	e := New(Options{})
	all, got := servedWorkers(e, 3)
	producer := e.Open(nil)
	e.Put(0, producer, Spec{TTR: 5}, nil)
	for i, left := range []int64{Never, 3 * second, 5 * second} {
		e.ResumeWait(0, all[i].s, 7*second, left)
	}
	if waited, left := e.Wait(all[1].s); waited != 7*second || left != 3*second {
		t.Errorf("waited %v, %v left", waited, left)
	}
	e.Tick(4 * second)
	e.Put(4*second, producer, Spec{TTR: 5}, nil)
	if len(*got) != 3 {
		t.Errorf("got %q", *got)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
