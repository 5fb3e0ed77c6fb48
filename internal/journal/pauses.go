package journal

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// pauses has the last record of each pause, so that none is lost with its segment.
// There may be very many pauses, and cleaning must find those of the oldest segment
// without looking at the others.
type pauses struct {
	at    map[string]pause // J4: tube -> its last record
	queue []pausedTube     // J4: all of at, and some stale ones; by segment
	gone  []string         // tubes whose TubeGone could not be appended
	bytes int64            // size of the records of at
}

// A pause is what its last record says.
type pause struct {
	segment uint64 // of the record, or an older one
	due     int64  // ns on the engine's clock
	delay   uint32 // s
}

type pausedTube struct {
	tube    string
	segment uint64
}

func newPauses(at map[string]pause) pauses {
	p := pauses{at: at}
	for tube, last := range at {
		p.queue = append(p.queue, pausedTube{tube, last.segment})
		p.bytes += pauseWeight(tube)
	}
	slices.SortFunc(p.queue, func(a, b pausedTube) int { return int(int64(a.segment - b.segment)) })
	return p
}

func pauseWeight(tube string) int64 { return cost(engine.TubePaused, len(tube), 0) }

// noted notes the last record of a pause, which is in the newest segment.
func (p *pauses) noted(c *engine.Change, segment uint64) {
	old, ok := p.at[c.Tube]
	if !ok {
		p.bytes += pauseWeight(c.Tube)
	}
	p.at[c.Tube] = pause{segment, c.Due, c.Delay}
	if old.segment != segment {
		p.queue = append(p.queue, pausedTube{c.Tube, segment})
	}
}

func (p *pauses) ended(tube string) {
	if _, ok := p.at[tube]; ok {
		delete(p.at, tube)
		p.bytes -= pauseWeight(tube)
	}
}

// moved notes that a log has healed, and has written the records of planned segments
// again, perhaps in other ones. They are all newer than the segment that failed.
func (p *pauses) moved(failed uint64) {
	for i := len(p.queue) - 1; i >= 0 && p.queue[i].segment > failed; i-- {
		q := &p.queue[i]
		if last := p.at[q.tube]; last.segment == q.segment {
			last.segment = failed
			p.at[q.tube] = last
		}
		q.segment = failed
	}
}

// copyPauses writes the records of pauses again that are not over and are in a segment
// which is about to be removed. It lowers budget; done is false if that was not enough.
func (j *Journal) copyPauses(going uint64, budget *int64) (done bool, err error) {
	p := &j.pauses
	for len(p.queue) > 0 && p.queue[0].segment <= going {
		if *budget <= 0 {
			return false, nil
		}
		q := p.queue[0]
		*budget -= pauseWeight(q.tube)
		if last := p.at[q.tube]; last.segment == q.segment {
			if last.due <= j.now {
				p.ended(q.tube)
			} else if err := j.copyRecord(going, engine.Change{Kind: engine.TubePaused, Tube: q.tube, Delay: last.delay, Due: last.due}); err != nil {
				return false, err
			}
		}
		p.queue = p.queue[1:]
	}
	return true, nil
}

// appendGone appends the TubeGone changes that could not be appended before. No client
// waits for them.
func (j *Journal) appendGone() (done bool) {
	p := &j.pauses
	for budget := int64(cleanStep); len(p.gone) > 0 && budget > 0; {
		tube := p.gone[0]
		if _, paused := j.eng.PauseOf(tube); !paused { // it may be again
			if _, err := j.append(&engine.Change{Kind: engine.TubeGone, Tube: tube}); err != nil {
				return false
			}
		}
		budget -= pauseWeight(tube)
		p.gone = p.gone[1:]
	}
	return len(p.gone) == 0
}
