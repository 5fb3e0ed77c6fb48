package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// An echo is a dialect whose server answers at once: a step is a letter, and the
// job that a slot takes is the one that it put.
type echo struct {
	bodies [][]byte
	last   []byte
	fifo
}

func (e *echo) appendPut(dst []byte, slot int, body []byte) []byte {
	e.push(slot)
	e.bodies[slot] = append(e.bodies[slot][:0], body...)
	return append(dst, 'p')
}
func (e *echo) appendTake(dst []byte, slot int) []byte   { e.push(slot); return append(dst, 't') }
func (e *echo) appendFinish(dst []byte, slot int) []byte { e.push(slot); return append(dst, 'f') }
func (e *echo) next(in []byte) (n, slot int, err error)  { e.last = in[:1]; return 1, e.pop(), nil }
func (e *echo) answer(slot int, s step) (body []byte, ok bool) {
	return e.bodies[slot], e.last[0] == "?ptf"[s]
}

// play lets the server answer what the session has sent, until it is silent.
func play(t *testing.T, s *session, now int64, ph phase, most int) {
	t.Helper()
	for range most {
		if len(s.out) == 0 {
			return
		}
		in := s.out
		s.out = nil
		if n, err := s.received(in, now, ph); n != len(in) || err != nil {
			t.Fatalf("received %q: %d, %v", in, n, err)
		}
	}
}

// TestSession: jobs are counted while measuring only, from put to finish, and
// none is begun when stopping.
func TestSession(t *testing.T) {
	const ms = int64(time.Millisecond)
	s := newSession(&echo{bodies: make([][]byte, 2), fifo: newFIFO(2)}, 3, 2, 64)
	s.begin(0)
	play(t, s, 1*ms, warming, 3) // both finish and begin again
	play(t, s, 2*ms, measuring, 2)
	play(t, s, 5*ms, measuring, 1) // both finish: 4 ms
	play(t, s, 6*ms, stopping, 9)  // and their successors do not count
	if s.active != 0 || s.jobs.Load() != 2 {
		t.Errorf("%d under way, %d jobs; want 0, 2", s.active, s.jobs.Load())
	}
	if p := s.tally.percentile(50).Round(time.Millisecond); p != 4*time.Millisecond {
		t.Errorf("p50 %v, want 4ms", p)
	}
	if s.tally.put != s.tally.taken || s.tally.put == 0 {
		t.Errorf("put %x, taken %x", s.tally.put, s.tally.taken)
	}
}

// TestSessionSurprises: a wrong reply and somebody else's job end it.
func TestSessionSurprises(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		harm func(e *echo)
		want string
	}{
		"wrong reply":  {"f", func(*echo) {}, `unexpected reply to put: "f"`},
		"no request":   {"ptfpp", func(*echo) {}, "unexpected reply to take"},
		"strange job":  {"pt", func(e *echo) { e.bodies[0] = make([]byte, 64) }, "a job that nobody put"},
		"short job":    {"pt", func(e *echo) { e.bodies[0] = e.bodies[0][:8] }, "a job that nobody put"},
		"strange name": {"pt", func(e *echo) { e.bodies[0][3] = 'z' }, "a job that nobody put"},
	} {
		e := &echo{bodies: make([][]byte, 1), fifo: newFIFO(1)}
		s := newSession(e, 0, 1, 64)
		s.begin(0)
		test.harm(e)
		if _, err := s.received([]byte(test.in), 0, warming); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// TestSum: a run in which a job was taken twice, or none was finished, has no result.
func TestSum(t *testing.T) {
	s := newSession(nil, 0, 1, 64)
	r := &run{clients: []*client{{s: s}}}
	used := span{elapsed: 2 * time.Second, serverCPU: time.Millisecond, clientCPU: 3 * time.Millisecond, peakRSS: 5}
	if _, err := r.sum(used); !errors.Is(err, errNoJobs) {
		t.Errorf("no jobs: error %v", err)
	}
	for range 100 {
		s.finished(0, int64(time.Millisecond), measuring)
	}
	s.tally.put = 1
	if _, err := r.sum(used); !errors.Is(err, errNotEachOnce) {
		t.Errorf("a job lost: error %v", err)
	}
	s.tally.taken = 1
	res, err := r.sum(used)
	if err != nil {
		t.Fatal(err)
	}
	if res.Jobs != 50 || res.ServerCPU != 10*time.Microsecond || res.ClientCPU != 30*time.Microsecond || res.PeakRSS != 5 {
		t.Errorf("%+v", res)
	}
}

// TestAllocs: in the steady state a job costs the client no allocation, with any
// of the dialects.
func TestAllocs(t *testing.T) {
	for name, exchanges := range transcripts {
		s := newSession(newTestDialect(name), 0, 2, len(testBody))
		s.begin(0)
		var in [][]byte
		for _, slot := range []string{"1", "2"} { // both jobs step by step, each in its turn
			for _, x := range exchanges {
				in = append(in, []byte(strings.Replace(x.in, " 2 ", " "+slot+" ", 1)))
			}
		}
		job := func() {
			for i := range exchanges {
				for _, reply := range [][]byte{in[i], in[i+len(exchanges)]} {
					if _, err := s.received(reply, 1, measuring); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.out = s.out[:0]
		}
		if n := testing.AllocsPerRun(100, job); n != 0 {
			t.Errorf("%s: %v allocations for a job in each of two slots", name, n)
		}
	}
}
