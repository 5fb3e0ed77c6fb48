package scale

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// planned is a schedule of jobs put at these times after its start, a
// millisecond each, which makes id i+1 of the i-th.
func planned(t *testing.T, at ...time.Duration) (*schedule, time.Time) {
	t.Helper()
	start := time.Now()
	s := newSchedule(int64(len(at)), start, 4800*time.Millisecond)
	s.watchFrom = s.due.Add(-2 * time.Second) // later than a plan would have it
	for i, sent := range at {
		delay, err := s.delay(start.Add(sent))
		if err != nil {
			t.Fatal(err)
		}
		s.jobs = append(s.jobs, scheduled{id: uint64(i + 1), delay: delay})
		s.bound(i, start.Add(sent), start.Add(sent+time.Millisecond))
	}
	return s, start
}

// serveAll serves the jobs with these indexes when all are due.
func (s *schedule) serveAll(t *testing.T, order ...int) {
	t.Helper()
	for _, i := range order {
		if err := s.serve(s.jobs[i].id, s.body(i), s.due); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllComeDueWithinASecond(t *testing.T) {
	start := time.Now()
	s := newSchedule(1_000_000, start, 5*time.Second)
	for now := start; now.Before(s.watchFrom); now = now.Add(777 * time.Millisecond) {
		delay, err := s.delay(now)
		if err != nil {
			t.Fatal(err)
		}
		at := now.Add(time.Duration(delay) * time.Second)
		if at.After(s.due) || !at.After(s.due.Add(-time.Second)) {
			t.Errorf("a job put after %v with a delay of %d s comes due %v before the end of the second", now.Sub(start), delay, s.due.Sub(at))
		}
	}
	if before, after := s.due.Add(-time.Second).Sub(s.watchFrom), s.watchUntil.Sub(s.due); before != 1250*time.Millisecond || after != 3750*time.Millisecond {
		t.Errorf("clients are watched from %v before to %v after the second", before, after)
	}
	if _, err := s.delay(s.watchFrom.Add(1)); err == nil || !strings.Contains(err.Error(), "only 0 of 1000000 jobs were put") {
		t.Errorf("error %v of a put that is too late", err)
	}
}

func TestMisplaced(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		at    []time.Duration // of the puts; this plan ends 3.2 s after its start
		order []int
		want  int
	}{
		{"as put, same delay", []time.Duration{0, 1 * ms, 2 * ms}, []int{0, 1, 2}, 0},
		{"swapped, same delay", []time.Duration{0, 1 * ms, 2 * ms}, []int{0, 2, 1}, 1},
		{"the first comes last, same delay", []time.Duration{0, 1 * ms, 2 * ms}, []int{1, 2, 0}, 1},
		{"reversed, same delay", []time.Duration{0, 1 * ms, 2 * ms}, []int{2, 1, 0}, 2},
	} {
		s, _ := planned(t, tt.at...)
		s.serveAll(t, tt.order...)
		if n, err := s.misplaced(); n != tt.want || err != nil {
			t.Errorf("%s: %d misplaced, %v, want %d", tt.name, n, err, tt.want)
		}
	}
}

// Against the definition, looked at for each pair.
func TestMisplacedAgainstAllPairs(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		n := 1 + r.IntN(30)
		start := time.Now()
		s := &schedule{total: n}
		for i := range n {
			delay := uint32(1 + r.IntN(3))
			s.jobs = append(s.jobs, scheduled{id: uint64(2*i + 1), delay: delay})
			sent := start.Add(time.Duration(i*137) * time.Millisecond)
			s.bound(i, sent, sent.Add(time.Duration(r.IntN(300))*time.Millisecond))
		}
		s.served = r.Perm(n)
		if r.IntN(2) == 0 { // nearly right
			slices.Sort(s.served)
			a, b := r.IntN(n), r.IntN(n)
			s.served[a], s.served[b] = s.served[b], s.served[a]
		}
		got, err := s.misplaced()
		if want := s.misplacedByPairs(); got != want || err != nil {
			t.Fatalf("seed %d: %d misplaced, %v, want %d of %v", seed, got, err, want, s.served)
		}
	}
}

func (s *schedule) misplacedByPairs() (n int) {
	for at, y := range s.served {
		if slices.ContainsFunc(s.served[:at], func(x int) bool {
			return y < x && (s.jobs[y].delay == s.jobs[x].delay || s.jobs[y].until.Before(s.jobs[x].soonest))
		}) {
			n++
		}
	}
	return n
}

func TestServe(t *testing.T) {
	s, start := planned(t, 0, 0)
	if err := s.serve(1, s.body(0), start); err == nil || !strings.Contains(err.Error(), "job 1 was served 3s before it was due") {
		t.Errorf("error %v of a job that comes too early", err)
	}
	for _, tt := range []struct {
		id   uint64
		body []byte
		want string // in the error; empty: none
	}{
		{2, s.body(1), ""},
		{2, s.body(1), "job 2 was served twice"},
		{1, s.body(1), "job 1 was never put with the body"},
		{3, s.body(2), "job 3 was never put"},
		{1, []byte("-1"), "job 1 was never put"},
		{1, []byte("hello"), "job 1 was never put"},
	} {
		err := s.serve(tt.id, tt.body, s.due)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("job %d, %q: error %v, want %q", tt.id, tt.body, err, tt.want)
		}
	}
	if _, err := s.misplaced(); err == nil || !strings.Contains(err.Error(), "1 of 2 jobs were served") {
		t.Errorf("error %v of a job that is missing", err)
	}
	if got, want := s.lastDue(), start.Add(3*time.Second); !got.Equal(want) {
		t.Errorf("the last job comes due %v after the start", got.Sub(start))
	}
}

func TestIdsMustGrow(t *testing.T) {
	s, _ := planned(t, 0, 0)
	s.jobs[0].id, s.jobs[1].id = 5, 4
	s.serveAll(t, 0, 1)
	if _, err := s.misplaced(); err == nil || !strings.Contains(err.Error(), "job 5 was put before job 4") {
		t.Errorf("error %v", err)
	}
}
