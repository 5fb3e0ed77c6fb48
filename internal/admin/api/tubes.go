package api

import (
	"encoding/base64"
	"net/http"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A Tube is what there is to tell of a tube.
type Tube struct {
	Name        string    `json:"name"`
	Jobs        JobCounts `json:"jobs"`
	Urgent      uint64    `json:"urgent"`
	BodyBytes   uint64    `json:"body_bytes"`
	OldestReady int64     `json:"oldest_ready"` // s
	TotalJobs   uint64    `json:"total_jobs"`
	Deletes     uint64    `json:"deletes"`
	Timeouts    uint64    `json:"timeouts"`
	Releases    uint64    `json:"releases"`
	Buries      uint64    `json:"buries"`
	Pauses      uint64    `json:"pauses"`
	Using       uint64    `json:"using"`
	Watching    uint64    `json:"watching"`
	Waiting     uint64    `json:"waiting"`
	Pause       int64     `json:"pause"`      // s
	PauseLeft   int64     `json:"pause_left"` // s
	Queue       Durations `json:"queue"`
	Work        Durations `json:"work"`
	Recent      *Recent   `json:"recent,omitempty"`
	Limit       *Limit    `json:"limit,omitempty"`
}

// Unwatched reports whether jobs are ready that nobody will take.
func (t *Tube) Unwatched() bool {
	one := health.Tube{Ready: t.Jobs.Ready, Watching: t.Watching, PauseLeft: pauseOf(t.Pause, t.PauseLeft)}
	return one.Unwatched()
}

// A Limit is how much a tube takes.
type Limit struct {
	Jobs  int64  `json:"jobs"`  // 0: any number
	Bytes int64  `json:"bytes"` // of bodies; 0: any number
	From  string `json:"from"`  // what has set it
}

// Durations are how often something took time, and how long all of that took.
type Durations struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
}

func durations(t engine.Total) Durations { return Durations{t.N, t.Sum / float64(time.Second)} }

// Tubes is a page of tubes. Those that match are counted if the page is asked for by anything
// but the name.
type Tubes struct {
	Tubes    []Tube     `json:"tubes"`
	Next     string     `json:"next,omitempty"`
	Matching *uint64    `json:"matching,omitempty"`
	Jobs     *JobCounts `json:"jobs,omitempty"` // of the tubes that match
}

// tubeAt tells of a tube; ok is false if there is none.
func tubeAt(e *engine.Engine, now int64, name string) (t Tube, ok bool) {
	st, o := e.TubeStats(now, []byte(name))
	return tubeOf(name, &st), o == engine.OK
}

func tubeOf(name string, st *engine.TubeStats) Tube {
	return Tube{
		Name:        name,
		Jobs:        JobCounts{st.Ready, st.Reserved, st.Delayed, st.Buried},
		Urgent:      st.Urgent,
		BodyBytes:   st.Bytes,
		OldestReady: seconds(st.OldestReady),
		TotalJobs:   st.TotalJobs,
		Deletes:     st.Deletes,
		Timeouts:    st.Timeouts,
		Releases:    st.Releases,
		Buries:      st.Buries,
		Pauses:      st.Pauses,
		Using:       st.Using,
		Watching:    st.Watching,
		Waiting:     st.Waiting,
		Pause:       st.Pause,
		PauseLeft:   st.PauseLeft,
		Queue:       durations(st.Queued),
		Work:        durations(st.Worked),
	}
}

// inCursor is how the name of a tube is a cursor: some of its characters mean something
// in a query, and a script should not have to know.
var inCursor = base64.RawURLEncoding

// listTubes tells of the tubes that the client may see, by name unless another order or a
// filter is asked for. The cursor is the name of the last.
func listTubes(r *request) (reply, error) {
	n, err := r.limit(maxLimit)
	if err != nil {
		return reply{}, err
	}
	recent, err := r.isTrue("recent")
	if err != nil {
		return reply{}, err
	}
	if r.query.Get("sort") != "" || r.query.Get("q") != "" || r.query.Get("has") != "" {
		return r.searchTubes(n, recent)
	}
	cursor := r.query.Get("cursor")
	after, err := inCursor.DecodeString(cursor)
	if err != nil || inCursor.EncodeToString(after) != cursor {
		return reply{}, badCursor()
	}
	var all engine.Names
	err = r.turn(func(e *engine.Engine, _ int64) error {
		all = e.TubeNames()
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	page := Tubes{Tubes: []Tube{}}
	names, more := r.namesAfter(all, string(after), n)
	if more {
		page.Next = inCursor.EncodeToString([]byte(names[n-1]))
	}
	err = each(r, names, func(e *engine.Engine, now int64, name string) {
		if t, ok := tubeAt(e, now, name); ok {
			page.Tubes = append(page.Tubes, t)
		}
	})
	if recent {
		r.api.history.addRecent(page.Tubes)
	}
	return reply{body: page}, err
}

// namesAfter returns the first n names after one, of those that the client may see, and
// whether there are more.
func (r *request) namesAfter(all engine.Names, after string, n int) (names []string, more bool) {
	for i := range all.Len() {
		if name := all.At(i); name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	seen := names[:0]
	for _, name := range names {
		if !r.who.Meets(statsNamed, name) {
			continue
		}
		if len(seen) == n {
			return seen, true
		}
		seen = append(seen, name)
	}
	return seen, false
}

func getTube(r *request) (reply, error) {
	var t Tube
	err := r.turn(func(e *engine.Engine, now int64) error {
		var ok bool
		if t, ok = tubeAt(e, now, r.tube); !ok {
			return r.noTube()
		}
		if l := e.LimitsOf(r.tube); l != (engine.TubeLimits{}) {
			t.Limit = &Limit{Jobs: l.Jobs, Bytes: l.Bytes}
		}
		return nil
	})
	if t.Limit != nil && r.api.opt.LimitOf != nil {
		t.Limit.From = r.api.opt.LimitOf(r.tube)
	}
	return reply{body: t}, err
}

func (r *request) noTube() error {
	return problemf(http.StatusNotFound, "there is no tube %s: a tube is there while it has jobs, or a connection uses or watches it", r.tube)
}

// pauseSeconds reads how long to pause.
func (r *request) pauseSeconds() (uint32, error) {
	var in struct {
		Seconds *uint32 `json:"seconds"`
	}
	if err := r.decode(&in, false); err != nil {
		return 0, err
	}
	if in.Seconds == nil || *in.Seconds == 0 {
		return 0, problemf(http.StatusBadRequest, "seconds: want how long to pause, 1 or more; resume ends a pause")
	}
	r.note("seconds", *in.Seconds)
	return *in.Seconds, nil
}

func pauseTube(r *request) (reply, error) {
	seconds, err := r.pauseSeconds()
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, r.onTube(func(e *engine.Engine, now int64) engine.Outcome {
		return e.Pause(now, []byte(r.tube), seconds)
	})
}

func resumeTube(r *request) (reply, error) {
	if err := r.decode(&struct{}{}, true); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, r.onTube(func(e *engine.Engine, now int64) engine.Outcome {
		return e.Resume(now, []byte(r.tube))
	})
}

// onTube does in a turn what may be NotFound because there is no such tube.
func (r *request) onTube(do func(e *engine.Engine, now int64) engine.Outcome) error {
	return r.turn(func(e *engine.Engine, now int64) error {
		o := do(e, now)
		if o == engine.NotFound {
			return r.noTube()
		}
		return outcomeProblem(o)
	})
}
