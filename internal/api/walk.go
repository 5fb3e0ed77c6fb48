package api

import (
	"cmp"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// allStates are the states of jobs, in the order in which a walk goes over them.
var allStates = []engine.State{engine.Ready, engine.Reserved, engine.Delayed, engine.Buried}

// A jobWalk goes over the jobs of some tubes, state by state, in slices between turns.
type jobWalk struct {
	places []place       // that are left; the first is where it is
	after  engine.Cursor // how far it has come there
	bodies int           // how many bytes of each body are wanted; 0: none
	page   int           // how many jobs of each place are enough; 0: all

	missing bool // there is no such tube, or was none at some time

	search engine.PageSearch
	begun  bool // search is of the first place
	found  int  // by search
	slice  []walkedJob
	arena  []byte // has the bodies of slice
}

// A place is the jobs of a tube in one state.
type place struct {
	tube  string
	state engine.State
}

// A walkedJob is a job as it was when the walk came by. Its body is valid until the next slice.
type walkedJob struct {
	engine.JobStats
	at   engine.Cursor
	body []byte
}

// shown returns the job as it is shown: with its body, if that is wanted and not too long. The bytes of that are added to a sum.
func (r *request) shown(j *walkedJob, withBody bool, sum *int) admin.Job {
	one := r.jobOf(&j.JobStats)
	if withBody && j.Size <= largestBody {
		one.SetBody(slices.Clone(j.body))
		*sum += len(j.body)
	}
	return one
}

const (
	// perPage is how many jobs the engine looks for at once: it keeps 16 bytes for each.
	perPage = 10_000

	// jobsPerTurn is how many jobs a turn takes at most. A turn of so many is a fifth of a millisecond, and each is followed by a pause
	// of one: with fewer, a search of a million jobs would be pauses.
	jobsPerTurn = 500

	// bytesPerTurn is how many bytes of bodies are enough for a turn.
	bytesPerTurn = 4 << 20

	// keptBody is the size from which on a body need not be copied; see engine.Job.Keep.
	keptBody = 128 << 10
)

// placesOf returns the places of tubes.
func placesOf(tubes []string, states []engine.State) []place {
	places := make([]place, 0, len(tubes)*len(states))
	for _, tube := range tubes {
		for _, state := range states {
			places = append(places, place{tube, state})
		}
	}
	return places
}

// next takes the next slice in a turn. It is empty at the end; more tells whether that was
// not reached yet.
func (w *jobWalk) next(e *engine.Engine, now int64) (more bool) {
	w.slice, w.arena = w.slice[:0], w.arena[:0]
	for n := 0; len(w.places) > 0 && len(w.slice) < jobsPerTurn && len(w.arena) < bytesPerTurn && (n == 0 || !e.Spent()); n++ {
		if n >= jobsPerTurn {
			return true
		}
		w.goOn(e, now)
	}
	return len(w.places) > 0
}

// goOn takes some jobs of the first place, and goes past it if there are no more, or enough were found.
func (w *jobWalk) goOn(e *engine.Engine, now int64) {
	at := w.places[0]
	if !w.begun {
		var o engine.Outcome
		if w.search, o = e.BeginPage([]byte(at.tube), at.state, w.after, cmp.Or(w.page, perPage)); o != engine.OK {
			w.missing = true
			w.pass()
			return
		}
		w.begun, w.found = true, 0
	}
	more := e.ContinuePage(now, &w.search, func(st engine.JobStats, at engine.Cursor) {
		w.slice = append(w.slice, walkedJob{JobStats: st, at: at, body: w.body(e, &st)})
		w.after = at
		w.found++
	})
	switch {
	case more:
	case w.page == 0 && w.found == perPage:
		w.begun = false
	default:
		w.pass()
	}
}

// pass goes to the next place.
func (w *jobWalk) pass() { w.places, w.after, w.begun = w.places[1:], engine.Cursor{}, false }

// body returns the body of a job, or the beginning of it.
func (w *jobWalk) body(e *engine.Engine, st *engine.JobStats) []byte {
	if w.bodies == 0 {
		return nil
	}
	job, _ := e.Peek(st.ID)
	if len(job.Body) > keptBody {
		kept := job.Keep()
		return kept[:min(len(kept), w.bodies)]
	}
	from := len(w.arena)
	w.arena = append(w.arena, job.Body...)
	return w.arena[from:len(w.arena):len(w.arena)]
}

// walk goes on with a walk, and calls each between the turns with the jobs of a slice, until
// each returns false.
func (r *request) walk(w *jobWalk, each func(slice []walkedJob) bool) error {
	return r.turnsUntil(func(e *engine.Engine, now int64) (bool, error) { return w.next(e, now), nil }, func() bool { return each(w.slice) })
}
