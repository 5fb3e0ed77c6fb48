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

// inTurns runs a step in as many turns as it needs, and passes the elements that each
// turn has found to tell. A step starts at a position, and returns the next position, or
// 0 at the end. inTurns returns early if no turns run.
func inTurns[T any](w *watcher, step func(e *engine.Engine, now int64, from int, found func(T)) (next int), tell func([]T)) {
	type turn struct {
		found []T
		next  int
	}
	for at := 0; ; time.Sleep(yieldPause) {
		seen, ok := within(w, func() (t turn) {
			w.broker.View(func(e *engine.Engine, now int64) {
				t.next = step(e, now, at, func(one T) { t.found = append(t.found, one) })
			})
			return t
		})
		if !ok {
			return
		}
		tell(seen.found)
		if at = seen.next; at == 0 {
			return
		}
	}
}

// survey returns up to n of the most important tubes whose statistics an identity may
// see.
func (w *watcher) survey(id *access.Identity, n int) (most []tubes.Tube) {
	if n <= 0 {
		return nil
	}
	inTurns(w, func(e *engine.Engine, now int64, from int, found func(tubes.Tube)) (next int) {
		return e.SurveyTubes(now, from, tubesPerTurn, func(name string, st engine.TubeStats) {
			found(tubes.Tube{Name: name, TubeStats: st})
		})
	}, func(some []tubes.Tube) {
		for _, t := range some {
			if id.Meets(rights.Stats.On(rights.NamedTube), t.Name) {
				most = append(most, t)
			}
		}
		if len(most) > 2*n {
			most = mostOf(most, n)
		}
	})
	return mostOf(most, n)
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
	inTurns(w, func(e *engine.Engine, now int64, from int, found func(engine.Hold)) (next int) {
		sessions, next := e.Sessions(from, tubesPerTurn)
		for _, s := range sessions {
			for _, h := range e.Holds(now, s, server.MaxNamedJobs) {
				found(h)
			}
		}
		return next
	}, func(holds []engine.Hold) {
		for _, h := range holds {
			all[h.Tube] = max(all[h.Tube], time.Duration(h.For))
		}
	})
	return all
}
