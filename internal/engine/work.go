package engine

// The engine counts the work of a turn in order to limit it: ten commands can be more
// work than ten thousand others. A unit takes about 100 ns. It is the work of adding a
// job to a queue or removing it, of copying a KiB of a body, or of examining sixteen
// tubes or list entries.
const (
	// maxTurnWork is the intended maximum work of a turn, about a millisecond. Most turns
	// take far less.
	maxTurnWork = 8192

	// tickShare limits Tick to an eighth of maxTurnWork, because commands wait for Tick
	// when millions of jobs are due.
	tickShare = 8

	// maxSlice is the number of jobs or tubes that a long operation processes in a slice.
	// A slice takes some tens of microseconds, a hundred times the fixed cost of a turn.
	maxSlice = 128

	// maxLoggedSlice is maxSlice for operations whose changes are logged. They wait for a
	// sync after each slice, which takes longer than the slice.
	maxLoggedSlice = 500

	// maxLogged is the maximum size of the bodies that a long operation logs in a turn,
	// excluding the last body. Replies to other clients wait until these bodies are
	// durable. The journal compacts four times as much in the turn, but at most 512 KiB
	// unless it is late.
	maxLogged = 128 << 10

	// minSlice is the number of jobs or tubes that a long operation processes even if the
	// turn has done enough work. So each operation makes progress, and a short one needs
	// only one turn.
	minSlice = 8

	stepsPerUnit = 16      // watched tubes, or patterns of policies, per unit
	lookupWork   = 8       // units for looking up the policy of a tube, in addition to the match of its name with each pattern
	tubeWork     = 3       // units for creating a tube, without its policy
	namesPerUnit = 64      // copied names of tubes
	finishWork   = 2       // units for ending a job by its policy, without the work of its queue
	idsPerUnit   = 4       // ids of a list that are looked up, per unit
	bytesPerUnit = 1 << 10 // bytes of bodies per unit

	globBytesPerStep = 8 // bytes of a name that is matched with a pattern, per step; many * take up to five times as long

	keyBytesPerUnit = 24 // bytes of bodies that are searched for a key, per unit; the worst JSON takes 4 ns per byte
)

// Charge adds work that a caller does in the turn, in units. The engine counts its own
// work.
func (e *Engine) Charge(units int) { e.turnWork += units }

// Spent reports whether the turn has done enough work. A caller with several commands
// then leaves the remaining commands to the next turn:
//
//	for n < len(commands) && (n == 0 || !e.Spent()) {
//
// A turn starts with Tick.
func (e *Engine) Spent() bool { return e.turnWork >= e.workLimit }

// tickSpent reports whether Tick has used its share of the turn.
func (e *Engine) tickSpent() bool { return e.turnWork >= e.workLimit/tickShare }

// enough reports whether a long operation has done enough for this turn after the given
// number of steps.
func (e *Engine) enough(steps int) bool {
	return steps >= min(e.slice, maxSlice) || steps >= minSlice && e.Spent()
}

// enoughChanges is enough for an operation whose changes are logged. When the turn has
// done twice its work, the operation does only a single step, because a step with a large
// body can take a quarter of a millisecond.
func (e *Engine) enoughChanges(steps int) bool {
	return steps >= e.slice || steps >= minSlice && e.Spent() ||
		steps > 0 && (e.turnLogged >= maxLogged || e.turnWork >= 2*e.workLimit)
}
