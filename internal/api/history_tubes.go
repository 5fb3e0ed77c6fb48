package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
)

// rates returns the puts and deletes per second in the last minute.
func (s *samples) rates() (put, deleted float64) {
	last := s.kept[max(1, len(s.kept)-60/tubeStep):]
	for i := range last {
		put += float64(last[i][history.Put])
		deleted += float64(last[i][history.Done])
	}
	took := float64(max(1, len(last)) * tubeStep)
	return put / took, deleted / took
}

// growth returns the increase of buried jobs since the first sample.
func (s *samples) growth() int64 { return int64(s.last[history.Buried] - s.kept[0][history.Buried]) }

// rates returns the rates of a column in millionths, by tube. It has rates of at most
// tubesKept tubes.
func (h *recorder) rates(column string) map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := make(map[string]int64, len(h.tubes))
	for name, th := range h.tubes {
		put, deleted := th.rates()
		rate := put
		if column == "deleted_per_second" {
			rate = deleted
		}
		known[name] = int64(rate * 1e6)
	}
	return known
}

// sampleTubes takes a sample of each selected tube. Once a minute, it surveys all tubes
// to select them again.
func (a *API) sampleTubes(ctx context.Context, unix int64) {
	h := a.history
	h.mu.Lock()
	names, tell := slices.Collect(maps.Keys(h.tubes)), a.survey
	complete := len(names) < tubesKept && h.looked > 0 // if it is complete, a tube without samples is new
	if len(names) == tubesKept && unix-h.looked < lookStep {
		tell = func(ctx context.Context, show func(t *tubes.Tube)) error { return look(ctx, a, someOf(names), show) }
	} else {
		h.looked = unix
	}
	h.mu.Unlock()
	most := list.First[tubes.Tube]{N: tubesKept, Compare: func(a, b tubes.Tube) int { return tubes.CompareBacklog(&a, &b, 1) }}
	if tell(ctx, func(t *tubes.Tube) { most.Show(*t) }) != nil {
		return // the survey is incomplete, so the deleted tubes are unknown
	}
	var fresh, dropped []string
	h.mu.Lock()
	for _, t := range most.Sorted() {
		now := history.Values{
			history.Ready: t.Ready, history.Reserved: t.Reserved, history.Delayed: t.Delayed, history.Buried: t.Buried,
			history.Put: t.TotalJobs, history.Reserves: t.Queued.N, history.Done: t.Deletes, history.Failed: t.Failed,
			history.Retried: t.Releases, history.Timeouts: t.Timeouts, history.OldestReady: uint64(t.OldestReady / int64(time.Second)),
		}
		th := h.tubes[t.Name]
		if th == nil {
			th = new(samples)
			fresh = append(fresh, t.Name)
			if h.tubes[t.Name] = th; !complete {
				th.last = now
			}
		}
		th.add(unix, &now, tubeSamples)
	}
	maps.DeleteFunc(h.tubes, func(name string, th *samples) bool {
		if th.at < unix { // the tube was deleted, or replaced by a more important one
			dropped = append(dropped, name)
		}
		return th.at < unix
	})
	h.mu.Unlock()
	a.measure(ctx, fresh, true)
	a.measure(ctx, dropped, false)
}

// someOf returns a step that calls see for the existing tubes in a list.
func someOf(names []string) func(e *engine.Engine, now int64, see func(t tubes.Tube)) (more bool) {
	return func(e *engine.Engine, now int64, see func(t tubes.Tube)) (more bool) {
		some := names[:min(perTurn, len(names))]
		for _, name := range some {
			if st, o := e.TubeStats(now, []byte(name)); o == engine.OK {
				see(tubes.Tube{Name: name, At: now, TubeStats: st})
			}
		}
		names = names[len(some):]
		return len(names) > 0
	}
}

// measure starts or ends the measurement of tubes, and returns their durations so far.
func (a *API) measure(ctx context.Context, names []string, on bool) map[string]*engine.Times {
	type measured struct {
		name  string
		times engine.Times
	}
	all := make(map[string]*engine.Times)
	look(ctx, a, func(e *engine.Engine, _ int64, see func(measured)) (more bool) {
		some := names[:min(timesPerTurn, len(names))]
		for _, name := range some {
			if times := e.MeasureTube([]byte(name), on); times != nil {
				see(measured{name, *times})
			}
		}
		names = names[len(some):]
		return len(names) > 0
	}, func(m *measured) { all[m.name] = new(m.times) })
	return all
}

// timesPerTurn is the number of tubes whose times a turn copies, which takes a tenth of a
// millisecond.
const timesPerTurn = 200

// endTubes returns points, for the time since its last call, of the tubes with samples.
func (a *API) endTubes(ctx context.Context) []history.Point {
	h := a.history
	h.mu.Lock()
	names := slices.Collect(maps.Keys(h.tubes))
	h.mu.Unlock()
	times := a.measure(ctx, names, true)
	all := make([]history.Point, 0, len(names)+1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if v := h.tubes[name].endMinute(times[name]); v != (history.Values{}) {
			all = append(all, history.Point{Tube: name, Values: v})
		}
	}
	return all
}

// recent returns the last ten minutes of a tube, or nil.
func (h *recorder) recent(name string) *admin.Recent {
	h.mu.Lock()
	defer h.mu.Unlock()
	th := h.tubes[name]
	if th == nil {
		return nil
	}
	r := &admin.Recent{Step: tubeStep, BuriedMore: th.growth(), Ready: make([]uint64, len(th.kept))}
	for i := range th.kept {
		r.Ready[i] = th.kept[i][history.Ready]
	}
	r.PutPerSecond, r.DeletedPerSecond = th.rates()
	return r
}

// getTubeHistory returns the series of a tube. They are empty if there are no points, for
// example for a new tube. A tube that no longer exists can have points.
func (r *request) getTubeHistory(in *admin.GetTubeHistory) (page admin.History, err error) {
	h := r.api.history
	h.mu.Lock()
	kept := h.tubes[r.tube]
	h.mu.Unlock()
	page, found, err := r.past(kept, r.tube, in.Step, in.Points, history.Memory)
	if err == nil && !found {
		if _, err = r.getTube(nil); err == nil {
			page = shownHistory(in.Step, page.End, nil, history.Memory)
		}
	}
	return page, err
}
