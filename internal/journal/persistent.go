package journal

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// persistentState contains the state that does not belong to a job, from its last
// records: each pause and each named text (see engine.ChangeKind.IsNamed). Cleaning must
// not lose such state with its segment. There can be very many pauses, and cleaning must
// find the pauses of the oldest segment without a search through all others.
type persistentState struct {
	at    map[string]stateEntry // J4: by keyOf
	queue []placed              // J4: all keys of at, and stale ones, by segment
	gone  []string              // tubes whose TubeGone could not be appended
	bytes int64                 // size of the records of at
}

// A stateEntry is the content of the last record for a pause or name.
type stateEntry struct {
	segment uint64 // segment of the record, or an older segment
	due     int64  // end of a pause, in ns on the engine's clock
	delay   uint32 // length of a pause, in seconds
	text    string // text of a name
}

type placed struct {
	key     string
	segment uint64
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

func newEntry(c *engine.Change, segment uint64) stateEntry {
	return stateEntry{segment, c.Due, c.Delay, string(c.Body)}
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

func newPersistentState(at map[string]stateEntry) persistentState {
	s := persistentState{at: at}
	for key, last := range at {
		s.queue = append(s.queue, placed{key, last.segment})
		s.bytes += last.weight(key)
	}
	slices.SortFunc(s.queue, func(a, b placed) int { return int(int64(a.segment - b.segment)) })
	return s
}

// record updates the state for a record in the newest segment.
func (s *persistentState) record(c *engine.Change, segment uint64) {
	key := keyOf(c)
	old := s.at[key]
	s.remove(key)
	if isOver(c) {
		return
	}
	last := newEntry(c, segment)
	s.at[key] = last
	s.bytes += last.weight(key)
	if old.segment != segment {
		s.queue = append(s.queue, placed{key, segment})
	}
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
	for i := len(s.queue) - 1; i >= 0 && s.queue[i].segment > durable; i-- {
		q := &s.queue[i]
		if last := s.at[q.key]; last.segment == q.segment {
			last.segment = durable
			s.at[q.key] = last
		}
		q.segment = durable
	}
}

// copyPersistentState writes the entries of a segment that is about to be removed again.
// It lowers budget; done is false if the budget was too small.
func (j *Journal) copyPersistentState(going uint64, budget *int64) (done bool, err error) {
	s := &j.persistentState
	for len(s.queue) > 0 && s.queue[0].segment <= going {
		if *budget <= 0 {
			return false, nil
		}
		q := s.queue[0]
		last, ok := s.at[q.key]
		*budget -= last.weight(q.key)
		if ok && last.segment == q.segment {
			if c := last.change(q.key); c.Kind == engine.TubePaused && c.Due <= j.now {
				s.remove(q.key)
			} else if _, err := j.appendWithSpare(&c); err != nil {
				return false, err
			}
		}
		s.queue = s.queue[1:]
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
