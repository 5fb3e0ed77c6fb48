package soak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A history contains the requests of all clients and their results.
type history struct {
	began time.Time

	mu       sync.Mutex
	ops      []*op
	bodies   map[uint64]string
	known    []uint64 // ids of acknowledged puts, in order
	acks     int
	sessions int
	full     bool     // a disk was full, so commands can be refused
	past     []uint64 // ids of jobs that no longer existed when a server ended
	lost     int      // number of unanswered puts before that
	wrong    []string
}

// An op is a command. If it has no reply, it can be executed at any time after it was
// sent, or never.
type op struct {
	verb           string
	id             uint64
	session        int
	body           string
	call, returned int64
	result         result
}

type result int

const (
	unknown result = iota
	done
	notFound
	refused // not executed
)

func newHistory() *history {
	return &history{began: time.Now(), bodies: make(map[uint64]string)}
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// diskIsFull records that servers can refuse commands from now on.
func (h *history) diskIsFull() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = true
}

// fail records an error of a server.
func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *history) newSession() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions++
	return h.sessions
}

func (h *history) begin(verb string, id uint64, session int, body string) *op {
	o := &op{verb: verb, id: id, session: session, body: body, call: h.now(), returned: math.MaxInt64}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
	return o
}

// answered records a reply. It returns false if the reply leaves open whether the command
// was executed.
func (h *history) answered(o *op, reply, body string) bool {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	word, rest, _ := strings.Cut(reply, " ")
	switch {
	case word == "INSERTED" && o.verb == "put":
		fmt.Sscan(rest, &o.id)
		if other, twice := h.bodies[o.id]; twice {
			h.wrong = append(h.wrong, fmt.Sprintf("id %d was assigned to %q and to %q", o.id, other, o.body))
		}
		h.bodies[o.id] = o.body
		h.known = append(h.known, o.id)
		o.result = done
	case word == "NOT_FOUND" && o.verb != "put":
		o.result = notFound
	case word == replies[o.verb]:
		if want := h.bodies[o.id]; (word == "FOUND" || word == "RESERVED") && body != want {
			h.wrong = append(h.wrong, fmt.Sprintf("job %d has the body %q, but was put with %q", o.id, body, want))
		}
		o.result = done
	case word == "OUT_OF_MEMORY" && h.full:
		o.result = refused
		return false // another member might have space
	case reply == "", word == "INTERNAL_ERROR":
		return false
	default:
		h.wrong = append(h.wrong, fmt.Sprintf("%s %d: unexpected reply %q", o.verb, o.id, reply))
		return false
	}
	o.returned = now
	h.acks++
	return true
}

var replies = map[string]string{
	"put": "INSERTED", "peek": "FOUND", "reserve-job": "RESERVED", "bury": "BURIED", "release": "RELEASED", "kick-job": "KICKED", "delete": "DELETED",
}

func (h *history) acknowledged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acks
}

// anyID returns the id of a recent or arbitrary job, or 0 if there is none. many reports
// whether there are many jobs.
func (h *history) anyID(r *rand.Rand) (id uint64, many bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.known)
	if n == 0 {
		return 0, false
	}
	if r.IntN(4) > 0 {
		return h.known[n-1-r.IntN(min(n, 40))], n > manyJobs
	}
	return h.known[r.IntN(n)], n > manyJobs
}

const manyJobs = 20_000

// ids returns the ids of jobs that might exist, and of jobs that were deleted.
func (h *history) ids() (ids, past []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.known), slices.Clone(h.past)
}

// there returns the number of jobs that existed at their last peek, and the number of
// unanswered puts.
func (h *history) there() (jobs, lost int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := make(map[uint64]bool)
	lost = h.lost
	for _, o := range h.ops {
		if o.verb == "peek" {
			last[o.id] = o.result == done
		}
		if o.verb == "put" && o.result == unknown {
			lost++
		}
	}
	for _, found := range last {
		if found {
			jobs++
		}
	}
	return jobs, lost
}

func (h *history) tally(is func(*op) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		if is(o) {
			n++
		}
	}
	return n
}

func (h *history) count(verb string) int {
	return h.tally(func(o *op) bool { return o.verb == verb && o.result == done })
}

func (h *history) others() int {
	return h.tally(func(o *op) bool {
		return o.verb != "put" && o.verb != "delete" && (o.result == done || o.result == notFound)
	})
}

func (h *history) unknown() int { return h.tally(func(o *op) bool { return o.result == unknown }) }

// A jobState is the model of a job. A reservation can end at any time, because the server
// can lose the connection before the client notices.
type jobState struct {
	there  bool
	buried bool
	holder int // number of the session, or 0 for none
}

// after returns the state after a command that succeeded or found no job. It returns
// false if this result is impossible.
func (s jobState) after(o *op, r result) (jobState, bool) {
	mine, free := s.holder == o.session, s.holder == 0
	var can bool
	next := s
	switch o.verb {
	case "put", "found":
		can, next = !s.there, jobState{there: true}
	case "peek":
		can = s.there
	case "reserve-job":
		can, next = s.there && free, jobState{there: true, holder: o.session}
	case "bury":
		can, next = s.there && mine, jobState{there: true, buried: true}
	case "release":
		can, next = s.there && mine, jobState{there: true}
	case "kick-job":
		can, next = s.there && s.buried, jobState{there: true}
	case "delete":
		can, next = s.there && (free || mine), jobState{}
	}
	if r == notFound {
		return s, !can
	}
	return next, can
}

// oneJob is the porcupine model of a queue with one job.
var oneJob = porcupine.NondeterministicModel{
	Init: func() []any { return []any{jobState{}} },
	Step: func(state, input, _ any) (next []any) {
		o, now := input.(*op), state.(jobState)
		for _, s := range []jobState{now, {there: now.there}} { // the reservation might have ended
			if s != now && now.holder == 0 {
				continue
			}
			if o.result == unknown {
				next = append(next, s)
				if s, ok := s.after(o, done); ok {
					next = append(next, s)
				}
			} else if s, ok := s.after(o, o.result); ok {
				next = append(next, s)
			}
		}
		return next
	},
	DescribeOperation: func(input, _ any) string {
		o := input.(*op)
		return fmt.Sprintf("%s by %d: %d", o.verb, o.session, o.result)
	},
}

// check checks the history of each job against the model of a queue.
func (h *history) check(t *testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.wrong {
		t.Error(text)
	}
	byJob := make(map[uint64][]porcupine.Operation)
	ops := make(map[uint64][]*op)
	for _, o := range h.ops {
		if o.id != 0 && o.result != refused {
			byJob[o.id] = append(byJob[o.id], porcupine.Operation{ClientId: o.session, Input: o, Call: o.call, Return: o.returned})
			ops[o.id] = append(ops[o.id], o)
		}
	}
	model := oneJob.ToModel()
	for id, operations := range byJob {
		if porcupine.CheckOperationsTimeout(model, operations, time.Minute) != porcupine.Ok {
			t.Errorf("the history of job %d is impossible for one queue:", id)
			for _, o := range ops[id] {
				t.Errorf("  %8.3f to %8.3f s: %s by session %d: %s", float64(o.call)/1e9, float64(o.returned)/1e9, o.verb, o.session, [...]string{"not answered", "done", "not found", "refused"}[o.result])
			}
			return
		}
	}
	t.Logf("the histories of %d jobs fit one queue", len(byJob))
}

// settle checks the history after the server of all sessions has ended and an audit has
// looked for each job. After that, the history contains only the jobs that exist, and
// unanswered commands count as not executed.
func (h *history) settle(t *testing.T) {
	h.check(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	there := make(map[uint64]bool)
	for _, o := range h.ops {
		if o.verb == "peek" {
			there[o.id] = o.result == done // the last result counts
		}
		if o.verb == "put" && o.result == unknown {
			h.lost++
		}
	}
	h.ops = h.ops[:0]
	known := h.known
	h.known = nil
	for _, id := range known {
		if there[id] {
			h.known = append(h.known, id)
			h.ops = append(h.ops, &op{verb: "found", id: id, call: -2, returned: -1, result: done})
		} else {
			h.past = append(h.past, id)
			h.bodies[id] = ""
		}
	}
}

// check rejects a history that is impossible for a queue, and accepts a possible one.
func TestHistory(t *testing.T) {
	at := func(n int64, verb string, session int, r result) porcupine.Operation {
		o := &op{verb: verb, id: 1, session: session, result: r, call: 10 * n, returned: 10*n + 5}
		if r == unknown {
			o.returned = math.MaxInt64
		}
		return porcupine.Operation{ClientId: session, Input: o, Call: o.call, Return: o.returned}
	}
	model := oneJob.ToModel()
	for _, test := range []struct {
		what string
		can  bool
		ops  []porcupine.Operation
	}{
		{"an acknowledged put is lost", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "peek", 2, notFound)}},
		{"a deleted job is back", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "delete", 1, done), at(3, "peek", 2, done)}},
		{"a job is deleted twice", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "delete", 1, done), at(3, "delete", 2, done)}},
		{"a bury is undone", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "reserve-job", 1, done), at(3, "bury", 1, done), at(4, "kick-job", 2, notFound)}},
		{"a job is buried without being reserved", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "bury", 1, done)}},
		{"a delete without a reply was executed", true, []porcupine.Operation{at(1, "put", 1, done), at(2, "delete", 1, unknown), at(3, "peek", 2, done), at(4, "peek", 2, notFound)}},
		{"a delete without a reply was not executed", true, []porcupine.Operation{at(1, "put", 1, done), at(2, "delete", 1, unknown), at(3, "delete", 2, done)}},
		{"an executed delete is undone", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "delete", 1, unknown), at(3, "peek", 2, notFound), at(4, "peek", 2, done)}},
		{"a reservation ends with its connection", true, []porcupine.Operation{at(1, "put", 1, done), at(2, "reserve-job", 1, done), at(3, "reserve-job", 2, notFound), at(4, "reserve-job", 3, done)}},
		{"the first holder no longer holds the job", false, []porcupine.Operation{at(1, "put", 1, done), at(2, "reserve-job", 1, done), at(3, "reserve-job", 2, done), at(4, "bury", 1, done)}},
	} {
		if got := porcupine.CheckOperations(model, test.ops); got != test.can {
			t.Errorf("%s: %v", test.what, got)
		}
	}
}
