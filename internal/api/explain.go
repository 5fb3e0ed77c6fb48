package api

import (
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// explainTube returns the reason why jobs of a tube wait.
func (r *request) explainTube(*admin.OfTube) (out admin.Explanation, err error) {
	var t *tubes.Tube
	err = r.turn(func(e *engine.Engine, now int64) (err error) {
		t, err = r.theTube(e, now)
		return err
	})
	if err != nil {
		return out, err
	}
	one := t.Health()
	if r.caller.Identity.Meets(statsEverywhere) {
		one.PausedBy = r.api.changes.Pausers()[r.tube]
	}
	s, err := r.serverHealth()
	if one.Refuses = s.Refuses(); err == nil && one.Ready > 0 && one.Watching > 0 {
		err = r.addWorkers(&one)
	}
	out.Text, out.Severity = one.Why()
	return out, err
}

// addWorkers adds the connections that watch the tube and hold jobs.
func (r *request) addWorkers(t *health.Tube) error {
	filter := connectionFilter{tubes: access.Pattern{r.tube}}
	err := r.allConnections(func(c *server.Connection, _ int64) {
		if c.Held == 0 || !filter.watched(c) {
			return
		}
		t.Busy++
		if held := time.Duration(c.HeldFor); held > t.HeldFor {
			t.HeldFor, t.Holder = held, c.ID
		}
	})
	if t.Looked = true; !r.caller.Identity.Meets(statsEverywhere) {
		t.Holder = 0
	}
	return err
}
