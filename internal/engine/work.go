package engine

// What a turn does is counted, so that it can be bounded: ten commands may be
// more work than ten thousand others. A unit is the like of 100 ns: a job put
// into a heap or taken out of one, a KiB of a body copied, sixteen watched tubes
// looked at.
const (
	// turnWork is after how much work a turn has done enough: most turns do far
	// less, and a millisecond is not yet a delay.
	turnWork = 8192

	// sliceLimit is how many jobs, or tubes, a long operation moves at a time.
	sliceLimit = 500

	// leastSteps is how many of them it moves even when the turn has done enough:
	// so each has an end, and those that are short are not made long.
	leastSteps = 8

	looksPerUnit = 16      // watched tubes
	bytesPerUnit = 1 << 10 // of bodies
)

// Spent reports whether the turn has done as much work as others should wait
// for. Who has several commands to execute then leaves those after the first to
// the next turn:
//
//	for n < len(commands) && (n == 0 || !e.Spent()) {
//
// A turn begins with Tick.
func (e *Engine) Spent() bool { return e.work >= e.budget }

// halfSpent reports whether Tick has done as much: the rest is for the commands.
func (e *Engine) halfSpent() bool { return e.work >= e.budget/2 }

// enough reports whether a long operation has moved enough for this turn, after
// so many steps.
func (e *Engine) enough(steps int) bool {
	return steps >= e.slice || steps >= leastSteps && e.Spent()
}
