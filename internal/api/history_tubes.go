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

// A tubeSample contains the values of a tube at a given time. They are truncated to 32
// bits, because only the differences of counters are used.
type tubeSample [history.Memory]uint32

// since returns the values for the time since an earlier sample.
func (s *tubeSample) since(before *tubeSample) (v history.Values) {
	for i, now := range s {
		if v[i] = uint64(now); history.Series(i).IsIncrease() {
			v[i] = more(before[i], now)
		}
	}
	return v
}

// A tubeHistory contains up to tubeSamples samples of a tube, oldest first.
type tubeHistory struct {
	samples []tubeSample
	seen    int64 // Unix time of the newest sample

	minute tubeSample // the sample at the end of the last minute
	times  engine.Times
}

func (h *tubeHistory) add(unix int64, s tubeSample) {
	if len(h.samples) == tubeSamples {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
	h.seen = unix
}

// rateSamples is the number of samples that span a minute, for the rates of the last
// minute.
const rateSamples = 60/tubeStep + 1

// rates returns the puts and deletes per second in the last minute.
func (h *tubeHistory) rates() (put, deleted float64) {
	last := h.samples[max(0, len(h.samples)-rateSamples):]
	for i := 1; i < len(last); i++ {
		put += float64(more(last[i-1][history.Put], last[i][history.Put]))
		deleted += float64(more(last[i-1][history.Done], last[i][history.Done]))
	}
	took := float64(max(1, len(last)-1) * tubeStep)
	return put / took, deleted / took
}

// growth returns the increase of buried jobs since the first sample.
func (h *tubeHistory) growth() int64 {
	return int64(h.samples[len(h.samples)-1][history.Buried]) - int64(h.samples[0][history.Buried])
}

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
		s := tubeSample{
			history.Ready: uint32(t.Ready), history.Reserved: uint32(t.Reserved), history.Delayed: uint32(t.Delayed), history.Buried: uint32(t.Buried),
			history.Put: uint32(t.TotalJobs), history.Reserves: uint32(t.Queued.N), history.Done: uint32(t.Deletes), history.Failed: uint32(t.Failed),
			history.Retried: uint32(t.Releases), history.Timeouts: uint32(t.Timeouts), history.OldestReady: uint32(t.OldestReady / int64(time.Second)),
		}
		th := h.tubes[t.Name]
		if th == nil {
			th = new(tubeHistory)
			fresh = append(fresh, t.Name)
			if h.tubes[t.Name] = th; !complete {
				th.minute = s
			}
		}
		th.add(unix, s)
	}
	maps.DeleteFunc(h.tubes, func(name string, th *tubeHistory) bool {
		if th.seen < unix { // the tube was deleted, or replaced by a more important one
			dropped = append(dropped, name)
		}
		return th.seen < unix
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
		th := h.tubes[name]
		last := &th.samples[len(th.samples)-1]
		p := history.Point{Tube: name, Values: last.since(&th.minute)}
		if now := times[name]; now != nil {
			setDurations(&p.Values, now, &th.times)
			th.times = *now
		}
		if th.minute = *last; p.Values != (history.Values{}) {
			all = append(all, p)
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
	r := &admin.Recent{Step: tubeStep, BuriedMore: th.growth(), Ready: make([]uint64, len(th.samples))}
	for i := range th.samples {
		r.Ready[i] = uint64(th.samples[i][history.Ready])
	}
	r.PutPerSecond, r.DeletedPerSecond = th.rates()
	return r
}

// more returns the increase of a counter between two samples. A counter that has
// decreased belongs to a new tube with the same name, and started at 0.
func more(before, now uint32) uint64 {
	if d := now - before; d < 1<<31 {
		return uint64(d)
	}
	return uint64(now)
}

// getTubeHistory returns the series of a tube. They are empty if there are no points, for
// example for a new tube. A tube that no longer exists can have points.
func (r *request) getTubeHistory(in *admin.GetTubeHistory) (page admin.History, err error) {
	n, err := points(in.Points, in.Step)
	if err != nil {
		return page, err
	}
	var all []*history.Values
	found := false
	h := r.api.history
	h.mu.Lock()
	end := h.now / int64(in.Step) * int64(in.Step)
	if in.Step > tubeStep {
		all, found = h.store.Series(r.tube, time.Duration(in.Step)*time.Second, time.Unix(end, 0), n)
	} else if th := h.tubes[r.tube]; th != nil {
		found, end, all = true, th.seen, make([]*history.Values, n)
		for i := 1; i < len(th.samples) && i <= n; i++ {
			all[n-i] = new(th.samples[len(th.samples)-i].since(&th.samples[len(th.samples)-i-1]))
		}
	}
	h.mu.Unlock()
	if !found {
		if _, err := r.getTube(nil); err != nil {
			return page, err
		}
		all = nil
	}
	return shownHistory(in.Step, end, all, history.Memory), nil
}
