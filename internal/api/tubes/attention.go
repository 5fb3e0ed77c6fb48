package tubes

import (
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// Attention makes a page of what an operator should look at, the worst first: of some findings about the server, and of those of its tubes.
func (l *Look) Attention(in *admin.GetAttention, found []health.Finding) (page admin.Attention, err error) {
	page = admin.Attention{Kinds: make(map[string]int)}
	worst := list.First[health.Finding]{N: in.Limit, Compare: func(a, b health.Finding) int { return health.Compare(&a, &b) }}
	var groups health.Groups
	show := func(found []health.Finding) {
		for i := range found {
			f := &found[i]
			page.Total++
			page.Kinds[f.Kind]++
			if !groups.Add(&l.tube, f) && worst.Wants(*f) {
				l.tube.Explain(f)
				worst.Show(*f)
			}
		}
	}
	show(found)
	err = l.Each(func(t *Tube) {
		found = l.findings(found[:0], t)
		show(found)
	})
	if err != nil {
		return page, err
	}
	groups.Each(worst.Show)
	page.Findings = append([]admin.Finding{}, worst.Sorted()...)
	return page, nil
}

// findings appends those of a tube, terse. What else is known of the tube stays in l.tube.
func (l *Look) findings(found []health.Finding, t *Tube) []health.Finding {
	one := &l.tube
	*one = t.Health()
	one.PausedBy = l.Pausers[t.Name]
	if l.Growth != nil && (t.Buried > 0 || t.Timeouts > 0) {
		l.Growth(one)
	}
	return one.Terse(found)
}

// Health returns what is known of the tube now.
func (t *Tube) Health() health.Tube {
	one := health.Tube{
		Name: t.Name, Jobs: t.Jobs(), Ready: t.Ready, Buried: t.Buried, Watching: t.Watching,
		Reserved: t.Reserved, Delayed: t.Delayed, Waiting: t.Waiting, Gate: time.Duration(t.Gate),
		Waits: time.Duration(t.OldestReady), PauseLeft: pauseOf(t.Pause, t.PauseLeft),
		Used: max(health.Share(int64(t.Jobs()), t.Most.Jobs), health.Share(int64(t.Bytes), t.Most.Bytes)),
	}
	if t.Gate == engine.Never {
		one.Gate = -1
	}
	if one.PauseLeft > 0 {
		one.PausedUntil = time.Now().Add(one.PauseLeft + time.Second) // what is left was rounded down
	}
	return one
}

// pauseOf returns how long a pause lasts, which is not over in its last second.
func pauseOf(pause, left int64) time.Duration {
	return time.Duration(max(left, min(pause, 1))) * time.Second
}
