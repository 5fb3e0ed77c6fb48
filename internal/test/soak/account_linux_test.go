package soak

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// states are those in which a job may be found.
type states uint8

const (
	ready states = 1 << iota // or reserved: that ends with the connection
	delayed
	buried
	gone
)

// slack is how much later than it was due a job may be ready.
const slack = 2 * time.Second

// An account is what clients were told, and what they have asked for.
type account struct {
	mu    sync.Mutex
	clock uint64 // grows with each entry

	jobs  map[uint64]*job // by id: all that are not known to be gone, and those deleted since the last audit
	lost  map[uint64]*job // by token: puts that were not answered, or not with an id
	live  []*job          // of jobs, those that were not deleted
	past  []uint64        // ids of some that were deleted
	kicks map[string]int  // by tube: kicks under way

	token   uint64 // of the last put
	last    uint64 // the highest id that was seen
	durable uint64 // the highest of a job that is on disk: it must not come again
	audited uint64 // last, at the last audit
	refused uint64 // puts since then that cost an id and made no job

	// What may happen in this life.
	diskFails bool // and descriptors run out
	draining  bool
	cutsOff   bool // clients that stall

	count tally
}

func newAccount(count tally) *account {
	return &account{jobs: make(map[uint64]*job), lost: make(map[uint64]*job), kicks: make(map[string]int), count: count}
}

// A job is one that was put, or may have been.
type job struct {
	id    uint64 // 0: not known
	token uint64 // its body follows from this
	tube  string
	ttr   uint32

	could    states
	pris     []uint32  // that it may have
	dueFrom  time.Time // when a delay may end at the earliest
	maxDelay time.Duration
	settled  time.Time // when the last command for it was answered
	unborn   bool      // the put may not be on disk
	doubtful bool      // nor what has happened since

	flying  int    // commands that are under way, or were lost
	changed uint64 // clock
	deleted uint64 // clock; 0: not
	index   int    // in account.live

	holder   *client
	heldFrom uint64    // clock
	until    time.Time // when its TTR ends at the earliest
}

func (l *account) tick() uint64 { l.clock++; return l.clock }

// An attempt is a command under way that leaves a job in some state.
type attempt struct {
	j     *job
	to    states
	pri   uint32 // if the command sets it
	sets  bool
	delay time.Duration
	began uint64
	sent  time.Time
}

// try notes that a command for a job is being sent. What it delays or buries may become
// ready at once: a kick that is under way may come after it, whether or not it is answered.
func (l *account) try(j *job, to states) *attempt {
	j.could |= to
	if to&(buried|delayed) != 0 && l.kicks[j.tube] > 0 {
		j.could |= ready
	}
	j.flying++
	j.changed = l.tick()
	return &attempt{j: j, to: to, began: j.changed, sent: time.Now()}
}

// tryPri is try for a command that sets the priority and, if it is not 0, a delay.
func (l *account) tryPri(j *job, to states, pri uint32, delay time.Duration) *attempt {
	from := time.Now().Add(delay)
	if j.could&delayed == 0 || from.Before(j.dueFrom) {
		j.dueFrom = from
	}
	j.maxDelay = max(j.maxDelay, delay)
	if !slices.Contains(j.pris, pri) {
		j.pris = append(j.pris, pri)
	}
	a := l.try(j, to)
	a.pri, a.sets, a.delay = pri, true, delay
	return a
}

// answered notes the answer to an attempt, of which success is one. If nothing
// else can have happened to the job since, that is what the job then is.
func (l *account) answered(a *attempt, r *wire.Reply, success wire.Word) {
	j, done := a.j, r.Kind == success
	j.flying--
	j.settled = time.Now()
	alone := j.flying == 0 && j.changed == a.began && (a.to == ready || a.to == gone || l.kicks[j.tube] == 0)
	j.changed = l.tick()
	j.doubtful = j.doubtful || r.Kind == wire.InternalError
	if done && a.to == gone {
		j.could, j.deleted = gone, l.clock
		l.unlist(j)
		return
	}
	if !done || !alone || j.deleted != 0 {
		return
	}
	j.could, j.unborn, j.doubtful = a.to, false, false
	if a.sets {
		j.pris = append(j.pris[:0], a.pri)
		j.dueFrom, j.maxDelay = a.sent.Add(a.delay), a.delay
	}
}

// quiet reports whether nothing has happened to a job since the clock was there.
func (j *job) quiet(since uint64) bool { return j.flying == 0 && j.changed < since }

func (l *account) list(j *job) {
	j.index = len(l.live)
	l.live = append(l.live, j)
}

func (l *account) unlist(j *job) {
	if j.index < 0 {
		return
	}
	end := l.live[len(l.live)-1]
	l.live[j.index], end.index = end, j.index
	l.live = l.live[:len(l.live)-1]
	j.index = -1
}

// any returns one of the live jobs, or nil.
func (l *account) any(rng *rand.Rand) *job {
	if len(l.live) == 0 {
		return nil
	}
	return l.live[rng.IntN(len(l.live))]
}

// name gives a job its id.
func (l *account) name(j *job, id uint64) error {
	if other := l.jobs[id]; other != nil && other != j || j.id != 0 && j.id != id {
		return fmt.Errorf("id %d is given out twice (other job: %v; this job: %v)", id, other, j)
	}
	if j.id == 0 {
		j.id = id
		l.jobs[id] = j
		l.last = max(l.last, id)
		l.list(j)
	}
	return nil
}

// seen finds the job that a reply with a body shows, to a command that was sent
// when the clock was there.
func (l *account) seen(r *wire.Reply, sent uint64) (*job, error) {
	token, ok := tokenOf(r.Body)
	if !ok || !bytes.Equal(r.Body, bodyOf(token)) {
		return nil, fmt.Errorf("job %d has a body that nobody has put: %d bytes, %.60q", r.ID, len(r.Body), r.Body)
	}
	j := l.jobs[r.ID]
	if j == nil {
		if j = l.lost[token]; j == nil {
			return nil, fmt.Errorf("job %d (token %d) was put by nobody, was refused or was deleted long ago", r.ID, token)
		}
		if err := l.name(j, r.ID); err != nil {
			return nil, err
		}
	}
	switch {
	case j.token != token:
		return nil, fmt.Errorf("job %d has the body of token %d, was put with that of %d", r.ID, token, j.token)
	case j.deleted != 0 && j.deleted < sent:
		return nil, fmt.Errorf("job %d was deleted and is back: %v", r.ID, j)
	}
	return j, nil
}

// kicked notes that a kick of a tube is sent, or was answered: what was buried or
// delayed there may be ready.
func (l *account) kicked(tube string, under int) {
	l.kicks[tube] += under
	kick := func(j *job) {
		if j.tube == tube && j.could&(buried|delayed) != 0 {
			j.could |= ready
			j.changed = l.tick()
		}
	}
	for _, j := range l.live {
		kick(j)
	}
	for _, j := range l.lost {
		kick(j)
	}
}

// restarted notes that all connections have ended, with the process: what was
// lost on the way will not be executed any more.
func (l *account) restarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.kicks)
	now := time.Now()
	for _, jobs := range []map[uint64]*job{l.jobs, l.lost} {
		for _, j := range jobs {
			if j.flying > 0 {
				j.flying, j.settled = 0, now
			}
			j.holder, j.doubtful, j.changed = nil, false, l.tick()
		}
	}
}

// A body begins with its token, and the rest follows from that: most bodies are
// small, some are large, and some look like records and commands.
func bodyOf(token uint64) []byte {
	rng := rand.New(rand.NewPCG(token, 1))
	size := 16 + rng.IntN(600)
	switch rng.IntN(50) {
	case 0:
		size = 16 + rng.IntN(65535-16+1)
	case 1, 2, 3:
		size = 16
	}
	b := fmt.Appendf(make([]byte, 0, size+8), "%016x", token)
	word := rng.Uint64()
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, word)
		switch word = word*6364136223846793005 + 1442695040888963407; word % 16 {
		case 0:
			b = append(b, "\r\ndelete 1\r\n"...)
		case 1:
			b = append(b, 0xe0, 0x93, 0x04, 0, 0x60, 0x09, 0, 0)
		}
	}
	return b[:size]
}

func tokenOf(body []byte) (token uint64, ok bool) {
	if len(body) < 16 {
		return 0, false
	}
	_, err := fmt.Sscanf(string(body[:16]), "%x", &token)
	return token, err == nil
}

// String shows what failures need.
func (j *job) String() string {
	ago := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return fmt.Sprint(time.Since(t).Round(time.Millisecond), " ago")
	}
	return fmt.Sprintf("{id %d, token %d, tube %s, ttr %d; could be %04b (gone, buried, delayed, ready), pris %v, due from %s, delay %v, settled %s; "+
		"unborn %t, %d commands under way, deleted %d, held %t until %s}", j.id, j.token, j.tube, j.ttr, j.could, j.pris, ago(j.dueFrom), j.maxDelay,
		ago(j.settled), j.unborn, j.flying, j.deleted, j.holder != nil, ago(j.until))
}

// mayFail reports whether this life has seen a fault that makes changes fail.
func (l *account) mayFail() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.diskFails
}

func (l *account) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// A kick that is not answered may have come after each command that was sent meanwhile.
func TestKickWithoutAnswer(t *testing.T) {
	l := newAccount(tally{new(sync.Mutex), make(map[string]int)})
	put := func(id uint64) *job {
		j := &job{token: id, tube: "kicked", ttr: 60, unborn: true, index: -1}
		l.lost[j.token] = j
		a := l.tryPri(j, delayed, 0, time.Hour)
		delete(l.lost, j.token)
		l.answered(a, &wire.Reply{Kind: wire.Inserted}, wire.Inserted)
		if err := l.name(j, id); err != nil {
			t.Fatal(err)
		}
		return j
	}
	l.kicked("kicked", 1)
	kicked := put(1)
	l.restarted() // there was no answer
	after := put(2)
	for state, want := range map[string][]*job{"ready": {kicked}, "delayed": {kicked, after}} {
		for _, j := range []*job{kicked, after} {
			found := *j
			err := found.found(map[string]string{"state": state, "pri": "0", "tube": "kicked", "ttr": "60"}, time.Now())
			if (err == nil) != slices.Contains(want, j) {
				t.Errorf("job %d is %s: %v", j.id, state, err)
			}
		}
	}
}
