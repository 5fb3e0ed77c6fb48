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
)

// A tubeSample has the values of a tube at a time. Counters are truncated to 32 bits,
// because only their differences are used.
type tubeSample struct {
	ready, reserved, delayed, buried           uint32
	put, reserves, deleted, released, timeouts uint32
	oldest                                     uint32 // seconds
}

// A tubeHistory has up to tubeSamples samples of a tube, the oldest first.
type tubeHistory struct {
	samples []tubeSample
	seen    int64 // Unix time of the newest sample
}

func (h *tubeHistory) add(unix int64, s tubeSample) {
	if len(h.samples) == tubeSamples {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
	h.seen = unix
}

// rateSamples is the number of samples in the rates of the last minute.
const rateSamples = 60/tubeStep + 1

// rates returns the puts and deletes per second in the last minute.
func (h *tubeHistory) rates() (put, deleted float64) {
	last := h.samples[max(0, len(h.samples)-rateSamples):]
	for i := 1; i < len(last); i++ {
		put += float64(more(last[i-1].put, last[i].put))
		deleted += float64(more(last[i-1].deleted, last[i].deleted))
	}
	took := float64(max(1, len(last)-1) * tubeStep)
	return put / took, deleted / took
}

// growth returns the increase of buried jobs since the first sample.
func (h *tubeHistory) growth() int64 {
	return int64(h.samples[len(h.samples)-1].buried) - int64(h.samples[0].buried)
}

// rates returns the rates of a column in millionths, by tube. There are up to tubesKept
// of them.
func (h *history) rates(column string) map[string]int64 {
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
	if len(names) == tubesKept && unix-h.looked < lookStep {
		tell = func(ctx context.Context, show func(t *tubes.Tube)) error { return look(ctx, a, someOf(names), show) }
	} else {
		h.looked = unix
	}
	h.mu.Unlock()
	most := list.First[tubes.Tube]{N: tubesKept, Compare: func(a, b tubes.Tube) int { return tubes.CompareBacklog(&a, &b, 1) }}
	if tell(ctx, func(t *tubes.Tube) { most.Show(*t) }) != nil {
		return // the survey is incomplete, so deleted tubes are unknown
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range most.Sorted() {
		th := h.tubes[t.Name]
		if th == nil {
			th = new(tubeHistory)
			h.tubes[t.Name] = th
		}
		th.add(unix, tubeSample{
			uint32(t.Ready), uint32(t.Reserved), uint32(t.Delayed), uint32(t.Buried),
			uint32(t.TotalJobs), uint32(t.Queued.N), uint32(t.Deletes), uint32(t.Releases), uint32(t.Timeouts), uint32(t.OldestReady / int64(time.Second)),
		})
	}
	maps.DeleteFunc(h.tubes, func(_ string, th *tubeHistory) bool { return th.seen < unix }) // deleted, or replaced by a more important tube
}

// someOf returns a step that sees the existing tubes of a list.
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

// recent returns the history of a tube, or nil.
func (h *history) recent(name string) *admin.Recent {
	th := h.tubes[name]
	if th == nil {
		return nil
	}
	r := &admin.Recent{Step: tubeStep, BuriedMore: th.growth(), Ready: make([]uint64, len(th.samples))}
	for i := range th.samples {
		r.Ready[i] = uint64(th.samples[i].ready)
	}
	r.PutPerSecond, r.DeletedPerSecond = th.rates()
	return r
}

// more returns the increase of a counter between two samples. A counter that decreases
// belongs to a new tube of the same name, and started at 0.
func more(before, now uint32) uint64 {
	if d := now - before; d < 1<<31 {
		return uint64(d)
	}
	return uint64(now)
}

// addRecent adds the recent history to tubes that have one.
func (h *history) addRecent(tubes []admin.Tube) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range tubes {
		tubes[i].Recent = h.recent(tubes[i].Name)
	}
}

// recentOf returns the samples of the last ten minutes of a tube, or nil if there are
// none.
func (h *history) recentOf(name string) *admin.Recent {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.recent(name)
	if r == nil {
		return nil
	}
	all := h.tubes[name].samples
	for i, s := range all {
		r.Reserved = append(r.Reserved, uint64(s.reserved))
		r.Delayed = append(r.Delayed, uint64(s.delayed))
		r.Buried = append(r.Buried, uint64(s.buried))
		r.OldestReady = append(r.OldestReady, uint64(s.oldest))
		before := all[max(0, i-1)]
		r.Put = append(r.Put, float64(more(before.put, s.put))/tubeStep)
		r.Deleted = append(r.Deleted, float64(more(before.deleted, s.deleted))/tubeStep)
	}
	return r
}

// getTubeHistory returns the last ten minutes of a tube. The result is empty without
// samples, for example for a new tube.
func (r *request) getTubeHistory(*admin.OfTube) (page admin.Recent, err error) {
	recent := r.api.history.recentOf(r.tube)
	if recent == nil {
		_, err := r.getTube(nil)
		return admin.Recent{Step: tubeStep, Ready: []uint64{}}, err
	}
	return *recent, nil
}
