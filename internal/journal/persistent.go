package journal

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// persistentState contains the state that does not belong to a job, from its last
// records: each pause and each named text (see engine.ChangeKind.IsNamed). Cleaning must
// not lose such state with its segment.
type persistentState struct {
	at    map[string]stateEntry // J4: by keyOf
	gone  []string              // tubes whose TubeGone could not be appended
	bytes int64                 // size of the records of at

	leaves  uint64   // segment that is about to be removed, or 0 if leaving must be computed
	leaving []string // keys to copy from it; the entries of some have moved or ended
}

// A stateEntry is the content of the last record for a pause or name.
type stateEntry struct {
	segment uint64 // segment of the record, or an older segment
	due     int64  // end of a pause, in ns on the engine's clock
	delay   uint32 // length of a pause, in seconds
	text    string // text of a name
}

// keyOf returns the key of a pause or name. A name's key has its kind as a prefix, which
// is a control character and so never starts a tube name.
func keyOf(c *engine.Change) string {
	if c.Kind.IsNamed() {
		return string(rune(c.Kind)) + c.Tube
	}
	return c.Tube
}

// isOver reports whether a record ends a pause or removes a name.
func isOver(c *engine.Change) bool {
	if c.Kind.IsNamed() {
		return len(c.Body) == 0
	}
	return c.Delay == 0
}

// change returns the change for an entry.
func (f *stateEntry) change(key string) engine.Change {
	if kind := engine.ChangeKind(key[0]); kind.IsNamed() {
		return engine.Change{Kind: kind, Tube: key[1:], Body: []byte(f.text)}
	}
	return engine.Change{Kind: engine.TubePaused, Tube: key, Delay: f.delay, Due: f.due}
}

// weight returns the maximum size of the entry's record, in bytes.
func (f *stateEntry) weight(key string) int64 {
	c := f.change(key)
	return costOf(&c)
}

func newPersistentState() persistentState {
	return persistentState{at: make(map[string]stateEntry)}
}

// record updates the state for a record in the newest segment.
func (s *persistentState) record(c *engine.Change, segment uint64) {
	key := keyOf(c)
	s.remove(key)
	if isOver(c) {
		return
	}
	last := stateEntry{segment, c.Due, c.Delay, string(c.Body)}
	s.at[key] = last
	s.bytes += last.weight(key)
}

func (s *persistentState) remove(key string) {
	if last, ok := s.at[key]; ok {
		delete(s.at, key)
		s.bytes -= last.weight(key)
	}
}

// moved attributes the entries in all segments after durable to durable. A log that heals
// writes their records again, to unknown segments, all of which are newer than durable.
func (s *persistentState) moved(durable uint64) {
	s.leaves = 0
	for key, last := range s.at {
		last.segment = min(last.segment, durable)
		s.at[key] = last
	}
}

// copyPersistentState writes the entries of a segment that is about to be removed again.
// It lowers budget; done is false if the budget was too small.
func (j *Journal) copyPersistentState(going uint64, budget *int64) (done bool, err error) {
	s := &j.persistentState
	if s.leaves != going { // once per segment, because there can be very many pauses
		s.leaves, s.leaving = going, nil
		for key, last := range s.at {
			if last.segment <= going {
				s.leaving = append(s.leaving, key)
			}
		}
		slices.Sort(s.leaving) // the content of the log must not depend on the order of a map
	}
	for len(s.leaving) > 0 {
		if *budget <= 0 {
			return false, nil
		}
		key := s.leaving[0]
		if last, ok := s.at[key]; ok && last.segment <= going {
			*budget -= last.weight(key)
			if c := last.change(key); c.Kind == engine.TubePaused && c.Due <= j.now {
				s.remove(key)
			} else if _, err := j.appendWithSpare(&c); err != nil {
				return false, err
			}
		}
		s.leaving = s.leaving[1:]
	}
	return true, nil
}

// appendGone appends the TubeGone changes for which there was no space earlier. No client
// waits for them.
func (j *Journal) appendGone() (done bool) {
	p := &j.persistentState
	for budget := int64(cleanStep); len(p.gone) > 0 && budget > 0; {
		tube := p.gone[0]
		if _, paused := j.eng.PauseOf(tube); !paused { // the tube might be paused again
			if _, err := j.append(&engine.Change{Kind: engine.TubeGone, Tube: tube}); err != nil {
				return false
			}
		}
		budget -= cost(engine.TubeGone, len(tube), 0)
		p.gone = p.gone[1:]
	}
	return len(p.gone) == 0
}
