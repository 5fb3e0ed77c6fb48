package wire

// State is a state of jobs, as an argument of list-jobs, flush-tube and move-jobs.
type State uint8

const (
	AnyState State = iota // no state was given
	StateReady
	StateReserved
	StateDelayed
	StateBuried
)

var stateWords = [...]string{StateReady: "ready", StateReserved: "reserved", StateDelayed: "delayed", StateBuried: "buried"}

// String returns the word for the state, as in stats-job. It is empty for AnyState.
func (s State) String() string { return stateWords[s] }

// ParseState returns the state for a word.
func ParseState(word string) (s State, ok bool) {
	for s := StateReady; s <= StateBuried; s++ {
		if word == stateWords[s] {
			return s, true
		}
	}
	return AnyState, false
}
