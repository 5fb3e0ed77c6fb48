package engine

// The engine counts the work of a turn, so that it can be bounded: ten commands
// may be more work than ten thousand others. A unit takes about 100 ns: a job is
// added to a heap or removed from one, a KiB of a body is copied, or sixteen
// watched tubes, or entries of a list, are looked at.
const (
	// maxTurnWork is the intended maximum work of a turn, about a millisecond. Most turns
	// do far less.
	maxTurnWork = 8192

	// tickShare: Tick does an eighth of that at most. When jobs come due by the million,
	// each command waits for as much.
	tickShare = 8

	// maxSlice is the number of jobs or tubes that a long operation moves at a time. A
	// slice takes some tens of microseconds, a hundred times the fixed cost of a turn.
	maxSlice = 128

	// maxLoggedSlice is the same for operations whose changes are logged: after each
	// slice they may have to wait for a sync, which takes longer than any slice.
	maxLoggedSlice = 500

	// maxLogged is the maximum size of the bodies that such an operation passes to the
	// Log in a turn, plus up to one body. The replies to all other clients wait until
	// these bodies are durable. The journal compacts four times as much in the turn, but
	// at most 512 KiB unless it is late.
	maxLogged = 128 << 10

	// minSlice is the number of jobs or tubes that it moves even if the turn has done
	// enough work. So each operation ends, and a short one needs only one turn.
	minSlice = 8

	looksPerUnit = 16      // watched tubes, entries of a list, patterns of policies, or places of a run
	seekWork     = 32      // units to find a place in a run
	lookupWork   = 8       // units to look up the policy of a tube, in addition to its name's match with each pattern
	tubeWork     = 3       // units to make a tube, beside its policy
	endWork      = 2       // units to end a job as its policy says, beside those of its queue
	idsPerUnit   = 4       // looked up, of a list
	bytesPerUnit = 1 << 10 // of bodies

	globBytesPerLook = 8 // of a name that is matched with a pattern; many * take up to five times as long

	keyBytesPerUnit = 24 // of bodies in which a key is looked for; the worst JSON takes 4 ns a byte
)

// Charge adds work that a caller does in the turn for a command, in units. Work that the
// engine does itself counts already.
func (e *Engine) Charge(units int) { e.turnWork += units }

// Spent reports whether the turn has done enough work. A caller with several
// commands then leaves those after the first to the next turn:
//
//	for n < len(commands) && (n == 0 || !e.Spent()) {
//
// A turn begins with Tick.
func (e *Engine) Spent() bool { return e.turnWork >= e.workLimit }

// tickSpent reports whether Tick has done its share. The rest is for the commands.
func (e *Engine) tickSpent() bool { return e.turnWork >= e.workLimit/tickShare }

// enough reports whether a long operation has moved enough for this turn after
// the given number of steps.
func (e *Engine) enough(steps int) bool {
	return steps >= min(e.slice, maxSlice) || steps >= minSlice && e.Spent()
}

// enoughChanges is enough for an operation whose changes are logged, if there is a Log.
// Such an operation does a single step if the turn has done twice as much as it should: a
// step with a large body can take a quarter of a millisecond.
func (e *Engine) enoughChanges(steps int) bool {
	return steps >= e.slice || steps >= minSlice && e.Spent() ||
		steps > 0 && (e.turnLogged >= maxLogged || e.turnWork >= 2*e.workLimit)
}
