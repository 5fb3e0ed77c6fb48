package journal

import (
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// standing has the last records of what is no job, and holds until another record says
// otherwise: of each pause, and of what was set for each pattern of tubes. None is to be
// lost with its segment. There may be very many pauses, and cleaning must find those of
// the oldest segment without looking at the others.
type standing struct {
	at    map[string]fact // J4: by keyOf: what the last record says
	queue []placed        // J4: all of at, and some stale ones; by segment
	gone  []string        // tubes whose TubeGone could not be appended
	bytes int64           // size of the records of at
}

// A fact is what the last record says of something.
type fact struct {
	segment  uint64 // of the record, or an older one
	due      int64  // of a pause, ns on the engine's clock
	delay    uint32 // of a pause, s
	settings string // of a pattern
}

type placed struct {
	key     string
	segment uint64
}

// ofPattern is what the keys of patterns begin with; no name of a tube does.
const ofPattern = "*"

// keyOf returns the key of what a record is about.
func keyOf(c *engine.Change) string {
	if c.Kind == engine.PolicySet {
		return ofPattern + c.Tube
	}
	return c.Tube
}

// isOver reports whether a record says that there is nothing to know any more.
func isOver(c *engine.Change) bool {
	if c.Kind == engine.PolicySet {
		return len(c.Body) == 0
	}
	return c.Delay == 0
}

func factOf(c *engine.Change, segment uint64) fact {
	return fact{segment, c.Due, c.Delay, string(c.Body)}
}

// change returns the change of a fact.
func (f *fact) change(key string) engine.Change {
	if pattern, ok := strings.CutPrefix(key, ofPattern); ok {
		return engine.Change{Kind: engine.PolicySet, Tube: pattern, Body: []byte(f.settings)}
	}
	return engine.Change{Kind: engine.TubePaused, Tube: key, Delay: f.delay, Due: f.due}
}

// weight is the size of the record.
func (f *fact) weight(key string) int64 {
	c := f.change(key)
	return cost(c.Kind, len(c.Tube), len(c.Body))
}

func newStanding(at map[string]fact) standing {
	s := standing{at: at}
	for key, last := range at {
		s.queue = append(s.queue, placed{key, last.segment})
		s.bytes += last.weight(key)
	}
	slices.SortFunc(s.queue, func(a, b placed) int { return int(int64(a.segment - b.segment)) })
	return s
}

// noted notes the last record of something, which is in the newest segment.
func (s *standing) noted(c *engine.Change, segment uint64) {
	key := keyOf(c)
	old := s.at[key]
	s.ended(key)
	if isOver(c) {
		return
	}
	last := factOf(c, segment)
	s.at[key] = last
	s.bytes += last.weight(key)
	if old.segment != segment {
		s.queue = append(s.queue, placed{key, segment})
	}
}

func (s *standing) ended(key string) {
	if last, ok := s.at[key]; ok {
		delete(s.at, key)
		s.bytes -= last.weight(key)
	}
}

// moved notes that a log has healed, and has written the records of planned segments
// again, perhaps in other ones. They are all newer than the segment that failed.
func (s *standing) moved(failed uint64) {
	for i := len(s.queue) - 1; i >= 0 && s.queue[i].segment > failed; i-- {
		q := &s.queue[i]
		if last := s.at[q.key]; last.segment == q.segment {
			last.segment = failed
			s.at[q.key] = last
		}
		q.segment = failed
	}
}

// copyStanding writes the records again of what still holds and is in a segment
// which is about to be removed. It lowers budget; done is false if that was not enough.
func (j *Journal) copyStanding(going uint64, budget *int64) (done bool, err error) {
	s := &j.standing
	for len(s.queue) > 0 && s.queue[0].segment <= going {
		if *budget <= 0 {
			return false, nil
		}
		q := s.queue[0]
		last, ok := s.at[q.key]
		*budget -= last.weight(q.key)
		if ok && last.segment == q.segment {
			if c := last.change(q.key); c.Kind == engine.TubePaused && c.Due <= j.now {
				s.ended(q.key)
			} else if _, err := j.appendWithStandby(&c); err != nil {
				return false, err
			}
		}
		s.queue = s.queue[1:]
	}
	return true, nil
}

// appendGone appends the TubeGone changes that could not be appended before. No client
// waits for them.
func (j *Journal) appendGone() (done bool) {
	p := &j.standing
	for budget := int64(cleanStep); len(p.gone) > 0 && budget > 0; {
		tube := p.gone[0]
		if _, paused := j.eng.PauseOf(tube); !paused { // it may be again
			if _, err := j.append(&engine.Change{Kind: engine.TubeGone, Tube: tube}); err != nil {
				return false
			}
		}
		budget -= cost(engine.TubeGone, len(tube), 0)
		p.gone = p.gone[1:]
	}
	return len(p.gone) == 0
}
