package journal

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// pauses says where the last record of each pause is, so that none is lost with its
// segment. There may be very many pauses, and cleaning must find those of the oldest
// segment without looking at the others.
type pauses struct {
	at    map[string]uint64 // J4: tube -> segment of the last record, or an older one
	queue []pausedTube      // J4: all of at, and some stale ones; by segment
	gone  []string          // tubes whose TubeGone could not be appended
	bytes int64             // size of the records of at
}

type pausedTube struct {
	tube    string
	segment uint64
}

func newPauses(at map[string]uint64) pauses {
	p := pauses{at: at}
	for tube, segment := range at {
		p.queue = append(p.queue, pausedTube{tube, segment})
		p.bytes += pauseWeight(tube)
	}
	slices.SortFunc(p.queue, func(a, b pausedTube) int { return int(int64(a.segment - b.segment)) })
	return p
}

func pauseWeight(tube string) int64 { return cost(engine.TubePaused, len(tube), 0) }

// noted notes that the last record of a pause is in the newest segment now.
func (p *pauses) noted(tube string, segment uint64) {
	old, ok := p.at[tube]
	if !ok {
		p.bytes += pauseWeight(tube)
	}
	if old != segment {
		p.at[tube] = segment
		p.queue = append(p.queue, pausedTube{tube, segment})
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
		if p.at[q.tube] == q.segment {
			p.at[q.tube] = failed
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
		if p.at[q.tube] == q.segment {
			c, paused := j.eng.PauseOf(q.tube)
			if !paused {
				p.ended(q.tube)
			} else if err := j.copyRecord(going, c); err != nil {
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
