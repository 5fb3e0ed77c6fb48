package tubes

import (
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// Attention returns a page of the given findings and the findings of the tubes, worst
// first.
func (s *Survey) Attention(in *admin.GetAttention, found []health.Finding) (page admin.Attention, err error) {
	worst := list.First[health.Finding]{N: in.Limit, Compare: func(a, b health.Finding) int { return health.Compare(&a, &b) }}
	var groups health.Groups
	show := func(found []health.Finding) {
		for i := range found {
			f := &found[i]
			page.Total++
			if (in.Each || !groups.Add(&s.tube, f)) && worst.Wants(*f) {
				s.tube.Explain(f)
				worst.Show(*f)
			}
		}
	}
	show(found)
	if err = s.lookAtWorkers(); err != nil {
		return page, err
	}
	err = s.Each(func(t *Tube) {
		found = s.findings(found[:0], t)
		show(found)
	})
	if err != nil {
		return page, err
	}
	groups.Each(worst.Show)
	page.Findings = append([]admin.Finding{}, worst.Sorted()...)
	return page, nil
}

// Of returns the health of a tube.
func (s *Survey) Of(t *Tube) (*health.Tube, error) {
	err := s.lookAtWorkers()
	s.see(t)
	return &s.tube, err
}

// lookAtWorkers sets the workers of all tubes.
func (s *Survey) lookAtWorkers() (err error) {
	if s.workers == nil {
		s.workers, err = s.Workers()
	}
	return err
}

// findings appends the findings of a tube without their texts, and sets s.tube.
func (s *Survey) findings(found []health.Finding, t *Tube) []health.Finding {
	s.see(t)
	return s.tube.Terse(found)
}

// see sets s.tube to the health of a tube.
func (s *Survey) see(t *Tube) {
	one := &s.tube
	*one = t.Health()
	s.Growth(one)
	if one.Workers = s.workers[t.Name]; one.Workers == nil {
		one.Workers = new(health.Workers) // no worker holds a job
	}
}

// Health returns the health of the tube, without counts and workers.
func (t *Tube) Health() health.Tube {
	one := health.Tube{
		Name: t.Name, Jobs: t.Jobs(), Ready: t.Ready, Buried: t.Buried, Watching: t.Watching,
		Reserved: t.Reserved, Delayed: t.Delayed, Waiting: t.Waiting, Gate: time.Duration(t.Gate), GateByLog: t.GateByLog, Dead: t.Dead,
		Waits: time.Duration(t.OldestReady), PauseLeft: pauseOf(t.Pause, t.PauseLeft),
		Used: max(health.Share(int64(t.Jobs()), t.Most.Jobs), health.Share(int64(t.Bytes), t.Most.Bytes)),
	}
	if t.Gate == engine.Never {
		one.Gate = -1
	}
	if t.Worked.N > 0 {
		one.Work, one.WorkP95 = max(1, time.Duration(mean(t.Worked.Sum, t.Worked.N))), time.Duration(t.WorkP95)
	}
	return one
}

// pauseOf returns the remaining time of a pause. In its last second, the pause is not
// over.
func pauseOf(pause, left int64) time.Duration {
	return time.Duration(max(left, min(pause, 1))) * time.Second
}
