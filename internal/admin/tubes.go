package admin

import (
	"math"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/server"
)

const (
	// tubesPerTurn is the number of tubes or sessions that a turn examines. This takes
	// about a tenth of a millisecond, so that a scrape does not delay clients noticeably.
	tubesPerTurn = 250

	// yieldPause is the pause between such turns, during which clients are served.
	yieldPause = time.Millisecond
)

// seen returns the names of the tubes whose statistics an identity may see.
func seen(names engine.Names, id *access.Identity) []string {
	var all []string
	for i := range names.Len() {
		if name := names.At(i); id.Meets(rights.Stats.On(rights.NamedTube), name) {
			all = append(all, name)
		}
	}
	return all
}

// survey reads tubes, some in each turn, and returns up to n of the most important ones.
// It returns early if no turns run.
func (w *watcher) survey(names []string, n int) []tubes.Tube {
	if n <= 0 {
		return nil
	}
	var most []tubes.Tube
	for some := range slices.Chunk(names, tubesPerTurn) {
		if most != nil {
			time.Sleep(yieldPause)
		}
		looked, ok := within(w, func() []tubes.Tube { return w.lookAtTubes(some) })
		if !ok {
			break
		}
		if most = append(most, looked...); len(most) > 2*n {
			most = mostOf(most, n)
		}
	}
	return mostOf(most, n)
}

// lookAtTubes reads tubes in a turn. It skips tubes that no longer exist.
func (w *watcher) lookAtTubes(names []string) []tubes.Tube {
	some := make([]tubes.Tube, 0, len(names))
	w.broker.View(func(e *engine.Engine, now int64) {
		for _, name := range names {
			if st, o := e.TubeStats(now, []byte(name)); o == engine.OK {
				some = append(some, tubes.Tube{Name: name, TubeStats: st})
			}
		}
	})
	return some
}

// mostOf returns the n most important tubes: up to half of them are the fullest, and the
// others the busiest. The criteria change slowly, so that the selection is stable between
// scrapes.
func mostOf(all []tubes.Tube, n int) []tubes.Tube {
	if len(all) <= n {
		return all
	}
	slices.SortFunc(all, func(a, b tubes.Tube) int { return tubes.CompareBacklog(&a, &b, math.MaxUint64) })
	full := 0
	for full < (n+1)/2 && all[full].Backlog() > 0 {
		full++
	}
	slices.SortFunc(all[full:], func(a, b tubes.Tube) int { return tubes.CompareUse(&a, &b) })
	return all[:n]
}

// longestHeld returns the longest reservation of each tube. The result is incomplete if a
// turn takes too long.
func (w *watcher) longestHeld() map[string]time.Duration {
	all := make(map[string]time.Duration)
	for at, more := 0, true; more; more = at > 0 {
		if at > 0 {
			time.Sleep(yieldPause)
		}
		holds, ok := within(w, func() (holds []engine.Hold) {
			w.broker.View(func(e *engine.Engine, now int64) {
				var sessions []*engine.Session
				sessions, at = e.Sessions(at, tubesPerTurn)
				for _, s := range sessions {
					holds = append(holds, e.Holds(now, s, server.MaxNamedJobs)...)
				}
			})
			return holds
		})
		if !ok {
			break
		}
		for _, h := range holds {
			all[h.Tube] = max(all[h.Tube], time.Duration(h.For))
		}
	}
	return all
}
