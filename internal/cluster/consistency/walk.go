package consistency

import "github.com/beanpole-mq/beanpole/internal/engine"

const (
	sliceJobs  = 500  // in a turn, at most
	sliceSteps = 2048 // steps in a turn, to the next job or pause, at most
)

// A walk goes over all jobs of an engine, each as the JobPut that would restore it, then
// over all pauses, in slices of a turn each, and in the last one over the policies that
// were set. It comes to what is there all the time exactly once. The zero walk is at the
// beginning.
type walk struct {
	next  int64        // of the next job; see engine.NextSnapshot
	names engine.Names // of tubes, when the jobs were done
	tube  int          // the next of them
}

// slice calls each for as much as one turn may do, and reports whether that was all. each
// returns how many bytes it has dealt with; a slice ends after so many.
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
	for c := range e.PoliciesSet() {
		each(&c)
	}
	return true
}
