package consistency

import "github.com/beanpole-mq/beanpole/internal/engine"

const (
	sliceJobs  = 500  // maximum number of jobs in a turn
	sliceSteps = 2048 // maximum number of steps in a turn to find the next job or pause
)

// A walk visits all jobs of an engine, each as the JobPut that would restore it, then all
// pauses, in slices of one turn each. The last slice visits the named texts. A walk
// visits each item that exists throughout the walk exactly once. The zero walk is at the
// start.
type walk struct {
	next  int64        // the position of the next job; see engine.NextSnapshot
	names engine.Names // names of the tubes, set after the last job
	tube  int          // index of the next tube in names
}

// slice calls each for one turn's share of items and reports whether the walk is
// complete. each returns the number of bytes it has processed; the slice ends after about
// that many bytes in total.
func (w *walk) slice(e *engine.Engine, bytes int, each func(*engine.Change) (bytes int)) (over bool) {
	for jobs, steps := 0, 0; w.next >= 0; steps++ {
		if jobs == sliceJobs || steps == sliceSteps || bytes < 0 {
			return false
		}
		c, next, ok := e.NextSnapshot(w.next)
		if ok {
			bytes -= each(&c)
			jobs++
		}
		if w.next = next; next < 0 {
			w.names = e.TubeNames()
		}
	}
	for steps := 0; w.tube < w.names.Len(); w.tube++ {
		if steps++; steps > sliceSteps {
			return false
		}
		if c, paused := e.PauseOf(w.names.At(w.tube)); paused {
			each(&c)
		}
	}
	for c := range e.Named() {
		each(&c)
	}
	return true
}
