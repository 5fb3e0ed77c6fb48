package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A source selects the next operation. It is either rapid, which can shrink a failure, or
// a plain generator, which is fast.
type source interface {
	intn(label string, n int) int // 0 <= result < n
}

type plainSource struct{ *rand.Rand }

func (s plainSource) intn(_ string, n int) int { return s.IntN(n) }

type rapidSource struct{ *rapid.T }

func (s rapidSource) intn(label string, n int) int {
	return rapid.IntRange(0, n-1).Draw(s.T, label)
}

// fataler contains the common methods of rapid.T and testing.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func pick[T any](src source, label string, from []T) T {
	return from[src.intn(label, len(from))]
}

// twins are the engine and the model, driven by the same operations.
type twins struct {
	t     fataler
	src   source
	e     *Engine
	m     *model
	now   int64
	pairs []*pair
	heard []answer      // from the engine
	log   []Change      // the engine's emitted changes
	plant func(*Policy) // plants a mistake in a policy of the engine
}

// A pair is a session of the engine and its counterpart in the model. It is the engine's
// Waiter.
type pair struct {
	tw *twins
	e  *Session
	m  *modelSession
}

func (p *pair) WaitOver(job Job, outcome Outcome) {
	p.tw.heard = append(p.tw.heard, answer{p.m.num, job.ID, string(job.Body), outcome})
}

func (p *pair) Worker() (identity string, address netip.AddrPort) { return workerOf(p.m.num) }

func newTwins(t fataler, src source, opt Options) *twins {
	opt.Limits.Tube = limitsOfTwins
	tw := &twins{t: t, src: src, e: New(opt), m: newModel(), now: int64(src.intn("start", 2)) * -5 * second}
	tw.e.slice = 1 + src.intn("slice", 4)
	tw.e.staleSweep.pass, tw.e.staleSweep.most = modelPass, math.MaxInt // the model ends all stale jobs at once
	tw.e.workLimit = maxTurnWork * tickShare                            // due events are processed in one turn
	tw.e.keys.mask = []uint32{1<<32 - 1, 15}[src.intn("hashes", 2)]
	tw.open()
	tw.open()
	return tw
}

var (
	tubeNames = []string{"default", "a", "b", "c", "d"}
	pris      = []uint32{0, 1, 1, 1023, 1024, 1<<32 - 1}
	delays    = []uint32{0, 0, 0, 1, 1, 2, 5}
	ttrs      = []uint32{0, 1, 2, 2, 3, 3, 5, 100}
	timeouts  = []int64{0, 1, 2, 3, 50, 50, Forever}
	pauses    = []uint32{0, 1, 2, 10}
	bodySizes = []int{0, 1, 16, 17, 64, 128, 129, 500}
	largeSize = []int{maxClassed, maxClassed + 1}
	swept     = []State{Ready, Delayed, Buried}
	kicks     = []uint32{0, 1, 2, 3, 1<<32 - 1}
)

func (tw *twins) tube() []byte {
	if tw.src.intn("rare tube", 12) == 0 {
		return fmt.Appendf(nil, "t%d", tw.src.intn("tube number", 40))
	}
	return []byte(pick(tw.src, "tube", tubeNames))
}

// idle returns a session that does not wait, or nil.
func (tw *twins) idle() *pair {
	var free []*pair
	for _, p := range tw.pairs {
		if !p.m.waiting {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return pick(tw.src, "session", free)
}

// job returns the id of a job: usually a held or existing job, sometimes a deleted one or
// an unused id.
func (tw *twins) job(s *modelSession) uint64 {
	held, all := tw.m.heldBy(s), tw.m.ids()
	switch k := tw.src.intn("which job", 8); {
	case k < 5 && len(held) > 0:
		return pick(tw.src, "held", held).id
	case k < 7 && len(all) > 0:
		return pick(tw.src, "job", all)
	}
	return uint64(tw.src.intn("any id", int(tw.m.lastID)+3))
}

// same fails if the two results differ.
func (tw *twins) same(verb string, engine, model any) {
	if !reflect.DeepEqual(engine, model) {
		tw.t.Helper()
		tw.t.Fatalf("%s: the model (-) and the engine (+) differ:\n%s", verb,
			cmp.Diff(model, engine, cmp.AllowUnexported(answer{})))
	}
}

func (tw *twins) open() {
	p := &pair{tw: tw}
	p.e, p.m = tw.e.Open(p), tw.m.open()
	tw.pairs = append(tw.pairs, p)
}

func (tw *twins) close(i int) {
	p := tw.pairs[i]
	tw.pairs = slices.Delete(tw.pairs, i, i+1)
	tw.e.Close(tw.now, p.e)
	tw.e.finish(tw.now) // the model processes everything at once
	tw.m.close(tw.now, p.m)
}

// finish completes the close of sessions and the end of pauses.
func (e *Engine) finish(now int64) {
	for _, s := range e.closedSessions() {
		for e.sessions[s.num] == s {
			e.continueClose(now, s)
		}
	}
	for _, t := range e.tubes {
		for t != nil && t.resuming {
			e.unpause(now, t)
		}
	}
}

// closedSessions returns the closed sessions with remaining work.
func (e *Engine) closedSessions() (closed []*Session) {
	for _, s := range e.sessions {
		if s != nil && s.closed {
			closed = append(closed, s)
		}
	}
	return closed
}

func engineAnswer(j Job, o Outcome) answer { return answer{0, j.ID, string(j.Body), o} }

func modelAnswer(j *modelJob, o Outcome) answer {
	if j == nil {
		return answer{outcome: o}
	}
	return answer{0, j.id, string(j.body), o}
}

// newJob chooses a job to put.
func (tw *twins) newJob() (Spec, []byte) {
	spec := Spec{Pri: pick(tw.src, "pri", pris), Delay: pick(tw.src, "delay", delays), TTR: pick(tw.src, "ttr", ttrs), Again: tw.src.intn("again", 8) == 0}
	sizes := bodySizes
	if tw.src.intn("large body", 40) == 39 {
		sizes = largeSize
	}
	fill := byte(tw.m.lastID)
	if tw.src.intn("like others", 3) > 0 {
		fill %= 3
	}
	return spec, bytes.Repeat([]byte{fill}, pick(tw.src, "size", sizes))
}

// put repeats the engine's put in the model. If several jobs are equal, the engine can
// choose the duplicate.
func (tw *twins) put(verb, tube string, spec Spec, body []byte, id uint64, o Outcome) {
	switch equal := tw.m.equal(tw.now, tube, spec, body); {
	case len(equal) == 0:
		tw.same(verb, []any{id, o}, []any{tw.m.putInto(tw.now, tube, spec, body), OK})
	case o != Duplicate || !slices.Contains(equal, id):
		tw.t.Fatalf("%s: the engine put job %d, outcome %d; it is a duplicate of %d", verb, id, o, equal)
	default:
		tw.m.duplicate(tw.now, tw.m.jobs[id], spec, body)
	}
}

// sessionVerbs contains the verbs that need a session that does not wait.
var sessionVerbs = map[string]func(tw *twins, p *pair){
	"put": func(tw *twins, p *pair) {
		spec, body := tw.newJob()
		id, o := tw.e.Put(tw.now, p.e, spec, bytes.Clone(body))
		p.m.producer = true
		tw.put("put", p.m.use, spec, body, id, o)
	},
	"skip-id": func(tw *twins, p *pair) {
		tw.e.SkipID(p.e)
		p.m.producer = true
		tw.m.lastID++
	},
	"reserve": func(tw *twins, p *pair) {
		timeout := pick(tw.src, "timeout", timeouts)
		got := engineAnswer(tw.e.Reserve(tw.now, p.e, timeout))
		tw.same("reserve", got, modelAnswer(tw.m.reserve(tw.now, p.m, timeout)))
	},
	"reserve-batch": func(tw *twins, p *pair) {
		timeout, n := pick(tw.src, "timeout", timeouts), 1+tw.src.intn("batch", 4)
		jobs, o := tw.e.ReserveBatch(tw.now, p.e, timeout, n, nil)
		got := answer{outcome: o}
		if o == OK {
			got = engineAnswer(jobs[0], o)
		}
		tw.same("reserve-batch", got, modelAnswer(tw.m.reserve(tw.now, p.m, timeout)))
		for _, j := range jobs[min(1, len(jobs)):] {
			tw.same("reserve-batch", engineAnswer(j, OK), modelAnswer(tw.m.reserve(tw.now, p.m, 0)))
		}
		for next := tw.m.offered(p.m); len(next) > 0 && o == OK; next = tw.m.offered(p.m) {
			if st, found := tw.e.JobStats(tw.now, next[0].id); found == OK && st.State == Ready || !tw.m.stale(tw.now, next[0]) {
				break
			}
		}
		if o == OK && len(jobs) < n && len(tw.m.offered(p.m)) > 0 {
			tw.t.Fatalf("a batch of %d has only %d jobs", n, len(jobs))
		}
	},
	"delete-batch": func(tw *twins, p *pair) {
		d := DeleteBatch{}
		var deleted, not uint64
		for range 1 + tw.src.intn("batch", 4) {
			d.IDs = append(d.IDs, tw.job(p.m))
		}
		ids := d.IDs
		for tw.e.ContinueDeleteBatch(p.e, &d) {
		}
		for _, id := range ids {
			if tw.m.delete(p.m, id) == OK {
				deleted++
			} else {
				not++
			}
		}
		tw.same("delete-batch", []uint64{d.Deleted, d.NotFound}, []uint64{deleted, not})
	},
	"reserve-job": func(tw *twins, p *pair) {
		id := tw.job(p.m)
		got := engineAnswer(tw.e.ReserveJob(tw.now, p.e, id))
		tw.same("reserve-job", got, modelAnswer(tw.m.reserveJob(tw.now, p.m, id)))
	},
	"release": func(tw *twins, p *pair) {
		id, pri, delay := tw.job(p.m), pick(tw.src, "pri", pris), pick(tw.src, "delay", delays)
		tw.same("release", tw.e.Release(tw.now, p.e, id, pri, delay), tw.m.release(tw.now, p.m, id, pri, delay))
	},
	"bury": func(tw *twins, p *pair) {
		id, pri := tw.job(p.m), pick(tw.src, "pri", pris)
		tw.same("bury", tw.e.Bury(p.e, id, pri), tw.m.bury(p.m, id, pri))
	},
	"note": func(tw *twins, p *pair) {
		id, text := tw.job(p.m), strings.Repeat("why", tw.src.intn("note", 30))
		tw.same("note", tw.e.Note(p.e, id, []byte(text)), tw.m.note(p.m, id, text))
	},
	"touch": func(tw *twins, p *pair) {
		id := tw.job(p.m)
		tw.same("touch", tw.e.Touch(tw.now, p.e, id), tw.m.touch(tw.now, p.m, id))
	},
	"kick": func(tw *twins, p *pair) {
		n := pick(tw.src, "kick", kicks)
		tw.same("kick", tw.e.Kick(tw.now, p.e, n), tw.m.kick(tw.now, p.m, n))
	},
	"kick-job": func(tw *twins, p *pair) {
		id := tw.job(p.m)
		tw.same("kick-job", tw.e.KickJob(tw.now, id), tw.m.kickJob(tw.now, id))
	},
	"delete": func(tw *twins, p *pair) {
		id := tw.job(p.m)
		tw.same("delete", tw.e.Delete(p.e, id), tw.m.delete(p.m, id))
	},
	"pause-tube": func(tw *twins, p *pair) {
		name, n := tw.tube(), pick(tw.src, "pause", pauses)
		tw.same("pause-tube", tw.e.Pause(tw.now, name, n), tw.m.pauseTube(tw.now, string(name), n))
		tw.e.finish(tw.now) // the model processes everything at once
	},
	"use": func(tw *twins, p *pair) {
		name := tw.tube()
		tw.e.Use(p.e, name)
		tw.m.useTube(p.m, string(name))
	},
	"watch": func(tw *twins, p *pair) {
		name := tw.tube()
		n, o := tw.e.Watch(p.e, name)
		tw.same("watch", []any{n, o}, []any{tw.m.watch(p.m, string(name)), OK})
	},
	"watch-many": func(tw *twins, p *pair) { // more than Engine.few, and than one line can ignore
		from := tw.src.intn("from", 20)
		for i := range 18 {
			name := fmt.Sprintf("t%d", from+i)
			n, _ := tw.e.Watch(p.e, []byte(name))
			tw.same("watch", n, tw.m.watch(p.m, name))
		}
	},
	"ignore": func(tw *twins, p *pair) {
		for range 1 + tw.src.intn("how many", 4) {
			name := string(tw.tube())
			if tw.src.intn("watched", 4) > 0 {
				name = pick(tw.src, "ignored", p.m.watches)
			}
			n, ok := tw.e.Ignore(p.e, []byte(name))
			wantN, wantOK := tw.m.ignore(p.m, name)
			tw.same("ignore", []any{n, ok}, []any{wantN, wantOK})
		}
	},
}

// otherVerbs contains the verbs that need no session, or work even if it waits.
var otherVerbs = map[string]func(tw *twins){
	"open": func(tw *twins) {
		if len(tw.pairs) < 8 {
			tw.open()
		}
	},
	"close": func(tw *twins) {
		if len(tw.pairs) == 0 {
			return
		}
		tw.close(tw.src.intn("closed", len(tw.pairs)))
	},
	"half-close": func(tw *twins) {
		if len(tw.pairs) > 2 {
			p := pick(tw.src, "half-closed", tw.pairs)
			tw.e.HalfClose(p.e)
			tw.m.halfClose(p.m)
		}
	},
	"tick": func(tw *twins) {
		tw.advance()
		var places []uint64
		for c := range tw.e.Snapshots {
			places = append(places, c.ID)
		}
		for turns := 0; turns == 0 || turns < 2000 && tw.e.Next() <= tw.now; turns++ { // many events can be due
			tw.e.Tick(tw.now)
		}
		tw.m.tickTo(tw.now, places)
		next, _ := tw.m.next()
		next = min(next, tw.m.sweepAt)
		if got := tw.e.Next(); got <= tw.now || got > next {
			tw.t.Fatalf("after Tick(%d) the engine wants %d next, the model %d", tw.now, got, next)
		}
	},
	"clear": func(tw *twins) {
		name, state := tw.tube(), pick(tw.src, "state", swept)
		w, o := tw.e.BeginClear(name, state, 0)
		tw.sweep(&w)
		n, found := tw.m.clear(string(name), state)
		tw.same("clear", []any{w.Done, o}, []any{n, found})
	},
	"move": func(tw *twins) {
		from, to, state := tw.tube(), tw.tube(), pick(tw.src, "state", swept)
		w, o := tw.e.BeginMove(from, to, state, 0)
		tw.sweep(&w)
		n, found := tw.m.move(tw.now, string(from), string(to), state)
		tw.same("move", []any{w.Done, o}, []any{n, found})
	},
	"redrive": func(tw *twins) {
		jobs := tw.m.in(pick(tw.src, "state", []State{Buried, Buried, Ready, Delayed}), func(*modelJob) bool { return true })
		id, to := uint64(99), pick(tw.src, "to", []string{"", "", "a"})
		if len(jobs) > 0 {
			id = pick(tw.src, "redriven", jobs).id
		}
		tw.same("redrive", tw.e.RedriveJob(tw.now, id, to), tw.m.redrive(tw.now, id, to))
	},
	"list": func(tw *twins) {
		name, state := tw.tube(), pick(tw.src, "state", append(swept, Reserved))
		var want []uint64
		for _, j := range tw.m.inTube(state, string(name)) {
			want = append(want, j.id)
		}
		got, o := tw.list(name, state, 1+tw.src.intn("page", 4))
		tw.same("list", []any{got, o == OK}, []any{want, tw.m.find(string(name)) != nil})
	},
	"put into": func(tw *twins) {
		name := tw.tube()
		spec, body := tw.newJob()
		id, o := tw.e.PutInto(tw.now, name, spec, bytes.Clone(body))
		tw.put("put into", string(name), spec, body, id, o)
	},
	"release job": func(tw *twins) {
		id, pri, delay := 1+uint64(tw.src.intn("id", int(tw.m.lastID)+1)), pick(tw.src, "pri", pris), pick(tw.src, "delay", delays)
		tw.same("release job", tw.e.ReleaseJob(tw.now, id, pri, delay), tw.m.releaseJob(tw.now, id, pri, delay, Taken))
	},
	"delete job": func(tw *twins) {
		id := 1 + uint64(tw.src.intn("id", int(tw.m.lastID)+1))
		tw.same("delete job", tw.e.DeleteJob(id), tw.m.delete(nil, id))
	},
	"bury job": func(tw *twins) {
		id, pri := 1+uint64(tw.src.intn("id", int(tw.m.lastID)+1)), pick(tw.src, "pri", pris)
		tw.same("bury job", tw.e.BuryJob(id, pri), tw.m.buryJob(id, pri, Taken))
	},
	"alter job": func(tw *twins) {
		id, which := 1+uint64(tw.src.intn("id", int(tw.m.lastID)+1)), tw.src.intn("fields", 16)
		var a Alteration
		for k, f := range []struct {
			field **uint32
			of    []uint32
		}{{&a.Pri, pris}, {&a.TTR, delays}, {&a.Delay, delays}} {
			if which&(1<<k) != 0 {
				v := pick(tw.src, "value", f.of)
				*f.field = &v
			}
		}
		if which&8 != 0 {
			_, body := tw.newJob()
			a.Body = &body
		}
		tw.same("alter job", tw.e.AlterJob(tw.now, id, a), tw.m.alterJob(tw.now, id, a.Pri, a.TTR, a.Delay, a.Body))
	},
	"move job": func(tw *twins) {
		id, to := 1+uint64(tw.src.intn("id", int(tw.m.lastID)+1)), tw.tube()
		tw.same("move job", tw.e.MoveJob(tw.now, id, string(to)), tw.m.moveJob(tw.now, id, string(to)))
	},
	"late":     func(tw *twins) { tw.advance() }, // due events are processed late
	"policies": (*twins).setPolicies,
}

// list returns the ids of jobs in a state, page by page.
func (tw *twins) list(tube []byte, state State, page int) (ids []uint64, o Outcome) {
	for after, more := (Cursor{}), true; more; {
		p, o := tw.e.BeginPage(tube, state, after, page)
		if o != OK {
			return nil, o
		}
		told := 0
		for tw.e.ContinuePage(tw.now, &p, func(st JobStats, at Cursor) {
			tw.same("listed", []any{st.Tube, st.State}, []any{string(tube), state})
			ids = append(ids, st.ID)
			told++
			after = at
		}) {
		}
		more = told == page
	}
	return ids, OK
}

func (tw *twins) sweep(w *Sweep) {
	for tw.e.ContinueSweep(tw.now, w) {
	}
}

// advance advances the time by a little, by a lot, or exactly to the next due event.
func (tw *twins) advance() {
	next, _ := tw.m.next()
	next = min(next, tw.m.sweepAt)
	switch k := tw.src.intn("step", 8); {
	case k < 4 && next != Never:
		tw.now = max(tw.now, next+int64(k%3)-1)
	case k < 6:
		tw.now += int64(tw.src.intn("ns", int(second)))
	case k < 7:
		tw.now += int64(tw.src.intn("s", 4)) * second
	}
}

// compare compares the visible states of the engine and the model.
func (tw *twins) compare() {
	e, m, now := tw.e, tw.m, tw.now
	if err := e.Check(); err != nil {
		tw.t.Fatalf("%v", err)
	}
	tw.same("what waiting sessions heard", tw.heard, m.heard)
	tw.same("stats", e.Stats(), m.allStats(now))
	tw.same("what policies did", e.PolicyCounts(), m.acted)
	tw.same("times", []Total{totalOf(&e.times.Queue), totalOf(&e.times.Work)}, []Total{m.queued, m.worked})
	var names []string
	for _, t := range m.tubes {
		names = append(names, t.name)
		st, _ := e.TubeStats(now, []byte(t.name))
		st.Gate, st.Reservable = 0, 0 // the served sessions show when a gate opens
		tw.same("stats-tube "+t.name, st, m.tubeStats(now, t))
	}
	tw.same("list-tubes", e.TubeNames().collect(), names)
	for _, id := range m.ids() {
		j := m.jobs[id]
		st, _ := e.JobStats(now, id)
		tw.same("stats-job", st, m.jobStats(now, j))
		tw.same("peek", engineAnswer(e.Peek(id)), modelAnswer(j, OK))
	}
	tw.same("last id", e.LastID(), m.lastID)
	tw.same("jobs and bodies in store", stored(e), storedByModel(m))
	for _, p := range tw.pairs {
		tw.same("list-tube-used", p.e.Using(), p.m.use)
		tw.same("list-tubes-watched", p.e.WatchedNames().collect(), p.m.watches)
		st := e.SessionStats(now, p.e)
		tw.same("session", []any{st.ID, st.Using, st.Held, st.Waiting, st.Producer, st.Worker},
			[]any{uint64(p.m.num) + 1, p.m.use, len(m.heldBy(p.m)), p.m.waiting, p.m.producer, p.m.worker})
		for _, state := range []State{Ready, Delayed, Buried} {
			first := answer{outcome: NotFound}
			if jobs := m.inTube(state, p.m.use); len(jobs) > 0 {
				first = modelAnswer(jobs[0], OK)
			}
			tw.same("peek-"+state.String(), engineAnswer(e.PeekState(p.e, state)), first)
		}
	}
}

func totalOf(h *histogram.Histogram) Total { return Total{h.Count(), h.Sum} }

// stored counts the stored records and bodies of the engine.
func stored(e *Engine) [2]int {
	bodies := used(&e.bodies.large.slots)
	for i := range e.bodies.classes {
		bodies += used(&e.bodies.classes[i].slots)
	}
	return [2]int{used(&e.jobs.slots), bodies}
}

func storedByModel(m *model) [2]int {
	bodies := 0
	for _, j := range m.jobs {
		bodies += int(count(len(j.body) > 0) + count(j.failed))
	}
	return [2]int{len(m.jobs), bodies}
}

// verb executes one command in the engine and in the model. It returns false if no
// session could execute it.
func (tw *twins) verb(name string) bool {
	if do := otherVerbs[name]; do != nil {
		do(tw)
	} else if p := tw.idle(); p != nil {
		sessionVerbs[name](tw, p)
	} else {
		return false
	}
	tw.log = append(tw.log, tw.e.TakeChanges()...)
	return true
}

// verbs returns the names of all commands. Frequent commands are repeated.
func verbs() []string {
	names := slices.Sorted(maps.Keys(sessionVerbs))
	names = slices.AppendSeq(names, maps.Keys(otherVerbs))
	names = append(names, strings.Fields("put put put put reserve reserve reserve reserve reserve reserve tick tick tick release release bury delete delete policies")...)
	slices.Sort(names)
	return names
}

// TestStateMachine uses rapid to find a short sequence of operations after which the
// engine and the model disagree.
func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tw := newTwins(t, rapidSource{t}, Options{})
		actions := map[string]func(*rapid.T){"": func(*rapid.T) { tw.compare() }}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(sessionVerbs)), slices.Collect(maps.Keys(otherVerbs))) {
			actions[name] = func(t *rapid.T) {
				if !tw.verb(name) {
					t.Skip("all sessions wait")
				}
			}
		}
		t.Repeat(actions)
	})
}

// TestRandom runs longer sequences of the same operations, so that there are many jobs,
// ids and sessions.
func TestRandom(t *testing.T) {
	tw := randomTwins(t, Options{})
	names := verbs()
	heard := make(map[Outcome]int)
	const enough = 12000 // enough for each policy action; the rarest occurs about three times in 4,000
	ran := 0
	for i := range seeds.Rounds(t, enough) {
		ran++
		tw.m.heard, tw.heard = nil, nil
		tw.verb(pick(tw.src, "verb", names))
		tw.compare()
		for _, a := range tw.heard {
			heard[a.outcome]++
		}
		// The number of jobs varies, so that workers sometimes wait and queues are
		// sometimes long.
		if len(tw.m.jobs) > 10+i/100%2*100 {
			tw.drain(i)
		}
	}
	if ran >= enough && (tw.m.acted.Exhausted() == 0 || tw.m.acted.Expired() == 0 || tw.m.acted[Retried] == 0 || tw.m.acted[Deduplicated] == 0 || tw.m.acted[WithoutKey] == 0) {
		t.Errorf("in %d operations policies did %v", ran, tw.m.acted)
	}
	for _, o := range []Outcome{OK, TimedOut, DeadlineSoon} {
		if ran >= enough && heard[o] == 0 {
			t.Errorf("in %d operations no wait ended with outcome %d", ran, o)
		}
	}
	t.Logf("waits that ended with a job: %d, timed out: %d, deadline soon: %d", heard[OK], heard[TimedOut], heard[DeadlineSoon])
}

// TestRandomLong starts with queues of several leaves.
func TestRandomLong(t *testing.T) {
	tw := randomTwins(t, Options{})
	tw.e.keys.mask = math.MaxUint32 // findKey visits at most maxEqualHashes jobs with equal hashes
	p := tw.pairs[0]
	p.m.producer = true
	for i := range 20 * leafJobs {
		spec := Spec{Pri: 1, Delay: uint32(i % 2 * 100), TTR: 100}
		body := []byte{byte(i)}
		id, o := tw.e.Put(tw.now, p.e, spec, bytes.Clone(body))
		tw.put("put", p.m.use, spec, body, id, o)
	}
	names := verbs()
	for range seeds.Rounds(t, 200) {
		tw.m.heard, tw.heard = nil, nil
		tw.verb(pick(tw.src, "verb", names))
		tw.compare()
	}
}

func randomTwins(t *testing.T, opt Options) *twins {
	return newTwins(t, plainSource{seeded(t)}, opt)
}

// seeded returns a generator. A flag can set its seed.
func seeded(t *testing.T) *rand.Rand {
	seed := seeds.One(t)
	return rand.New(rand.NewPCG(seed, seed))
}

// drain deletes most unreserved jobs, so that the model stays fast. If that is not
// enough, a session releases its jobs.
func (tw *twins) drain(n int) {
	tw.open()
	p := tw.pairs[len(tw.pairs)-1]
	for _, id := range tw.m.ids() {
		if (id+uint64(n))%8 != 0 {
			tw.same("delete", tw.e.Delete(p.e, id), tw.m.delete(p.m, id))
		}
	}
	tw.close(len(tw.pairs) - 1)
	if len(tw.m.jobs) > 50 && len(tw.pairs) > 0 {
		tw.close(0)
	}
	tw.compare()
}
