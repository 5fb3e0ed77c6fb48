package consistency

import "github.com/beanpole-mq/beanpole/internal/engine"

const (
	sliceJobs  = 500  // visited in a turn, at most
	sliceSteps = 2048 // steps in a turn, to the next job or pause, at most
)

// A walk visits all jobs of an engine, each as the JobPut that would restore it, then all
// pauses, in slices of a turn each, and in the last one the policies that were set. What
// is there all the time is visited exactly once. The zero walk has visited nothing.
type walk struct {
	next  int64        // of the next job; see engine.NextSnapshot
	names engine.Names // of tubes, when all jobs had been visited
	tube  int          // the next of them
}

// slice visits what one turn may, and reports whether that was the last. visit returns
// how many bytes it has dealt with; a slice ends after so many.
func (w *walk) slice(e *engine.Engine, bytes int, visit func(*engine.Change) (bytes int)) (over bool) {
	for jobs, steps := 0, 0; w.next >= 0; steps++ {
		if jobs == sliceJobs || steps == sliceSteps || bytes < 0 {
			return false
		}
		c, next, ok := e.NextSnapshot(w.next)
		if ok {
			bytes -= visit(&c)
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
			visit(&c)
		}
	}
	for c := range e.PoliciesSet() {
		visit(&c)
	}
	return true
}
