package api

import (
	"cmp"
	"math"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

// allStates are the states of jobs, in the order of a scan.
var allStates = []engine.State{engine.Ready, engine.Reserved, engine.Delayed, engine.Buried}

// A jobScan scans the jobs of tubes, state by state, a slice in each turn.
type jobScan struct {
	places []place       // remaining places; the first is the current one
	after  engine.Cursor // position in the current place
	bodies int           // maximum length of the copied bodies; 0 copies none
	page   int           // maximum number of jobs in a place; 0 means all

	missing bool // whether a tube does not exist, or was deleted

	search engine.PageSearch
	begun  bool // whether the search in the current place has started
	slice  []scannedJob
	arena  []byte // bodies of slice
}

// A place is a tube and a state of jobs.
type place struct {
	tube  string
	state engine.State
}

// A scannedJob is a job at the time of the scan. Its body is valid until the next slice.
type scannedJob struct {
	engine.JobStats
	at   engine.Cursor
	body []byte
}

// shown returns the job for an answer. It includes the body if requested and not too
// large, and adds the body's size to *sum.
func (r *request) shown(j *scannedJob, withBody bool, sum *int) admin.Job {
	one := r.jobOf(&j.JobStats)
	if withBody && j.Size <= largestBody {
		jobjson.SetBody(&one, slices.Clone(j.body))
		*sum += len(j.body)
	}
	return one
}

const (
	// jobsPerTurn is the maximum number of jobs in a turn, which takes a fifth of a
	// millisecond. A pause of a millisecond follows each turn, so with fewer jobs per
	// turn, a search of a million jobs would mostly wait.
	jobsPerTurn = 500

	// bytesPerTurn is the size of bodies after which a turn ends.
	bytesPerTurn = 4 << 20

	// keptBody is the minimum size of bodies that are not copied; see engine.Job.Keep.
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

// next collects the next slice in a turn, and reports whether there is more. The slice is
// empty at the end.
func (w *jobScan) next(e *engine.Engine, now int64) (more bool) {
	w.slice, w.arena = w.slice[:0], w.arena[:0]
	for n := 0; len(w.places) > 0 && len(w.slice) < jobsPerTurn && len(w.arena) < bytesPerTurn && (n == 0 || !e.Spent()); n++ {
		if n >= jobsPerTurn {
			return true
		}
		w.goOn(e, now)
	}
	return len(w.places) > 0
}

// goOn collects jobs in the current place, and leaves the place if it has no more jobs or
// enough were found.
func (w *jobScan) goOn(e *engine.Engine, now int64) {
	at := w.places[0]
	if !w.begun {
		var o engine.Outcome
		if w.search, o = e.BeginPage([]byte(at.tube), at.state, w.after, cmp.Or(w.page, math.MaxInt)); o != engine.OK {
			w.missing = true
			w.pass()
			return
		}
		w.begun = true
	}
	more := e.ContinuePage(now, &w.search, func(st engine.JobStats, at engine.Cursor) {
		w.slice = append(w.slice, scannedJob{JobStats: st, at: at, body: w.body(e, &st)})
		w.after = at
	})
	if !more {
		w.pass()
	}
}

// pass continues with the next place.
func (w *jobScan) pass() { w.places, w.after, w.begun = w.places[1:], engine.Cursor{}, false }

// body returns a copy of a job's body, or of the start of the body.
func (w *jobScan) body(e *engine.Engine, st *engine.JobStats) []byte {
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

// scan runs a scan. It calls each between turns with the jobs of a slice, until each
// returns false.
func (r *request) scan(w *jobScan, each func(slice []scannedJob) bool) error {
	return r.turnsUntil(func(e *engine.Engine, now int64) (bool, error) { return w.next(e, now), nil }, func() bool { return each(w.slice) })
}
