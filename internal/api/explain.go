package api

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// explainTube says why jobs of a tube wait.
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
	one.PausedBy = r.api.changes.Pausers()[r.tube]
	s, err := r.serverHealth()
	if one.Refuses = s.Refuses(); err == nil && one.Ready > 0 && one.Watching > 0 {
		err = r.addWorkers(&one)
	}
	out.Text, out.Severity = one.Why()
	return out, err
}

// addWorkers adds what those do who watch the tube.
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

// An expectation is what somebody has said of findings.
type expectation struct {
	kind, tube string // tube may be a pattern; empty: the server
	by         string
	until      time.Time
}

// expectations are those that there are. They are in memory only: after a restart, findings count until somebody says again that they
// are expected, and nothing stays hidden because it was so once.
type expectations struct {
	mu  sync.Mutex
	all expected
}

const mostExpectations = 1000

// now returns those that hold still.
func (x *expectations) now() expected {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.besides(&expectation{})
}

type expected []expectation

// besides returns those that hold still, and were said of other findings than one.
func (x expected) besides(one *expectation) expected {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(x), func(other expectation) bool {
		return other.kind == one.kind && other.tube == one.tube || !other.until.After(now)
	})
}

// mark marks a finding if it is expected. Of several that say so, the last one has.
func (x expected) mark(f *health.Finding) {
	for i := range x {
		if one := &x[i]; one.kind == f.Kind && (one.tube == f.Tube || one.tube != "" && f.Tube != "" && access.Match(one.tube, f.Tube)) {
			f.ExpectedBy, f.ExpectedUntil, f.ExpectedTubes = one.by, one.until.UTC().Format(time.RFC3339), one.tube
			if one.tube == f.Tube {
				f.ExpectedTubes = ""
			}
		}
	}
}

// expectFinding marks findings.
func (r *request) expectFinding(in *admin.ExpectFinding) (none admin.None, err error) {
	r.note("kind", in.Kind)
	r.note("tube", in.Tube)
	r.note("seconds", in.Seconds)
	one := expectation{kind: in.Kind, tube: in.Tube, by: r.caller.Identity.Name(), until: time.Now().Add(time.Duration(in.Seconds) * time.Second)}
	if in.Tube == "" || strings.ContainsAny(in.Tube, "*?") {
		err = r.permittedOn(manageEverywhere, "every tube")
	} else {
		err = r.permittedOn(manageNamed, "the tube "+in.Tube, in.Tube)
	}
	if err != nil {
		return none, err
	}
	x := &r.api.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	others := x.all.besides(&one)
	if in.Seconds == 0 {
		f := health.Finding{Kind: in.Kind, Tube: in.Tube}
		if others.mark(&f); f.ExpectedTubes != "" { // then nothing has changed
			return none, problemf(http.StatusConflict, "%s is still expected of the tubes %s: say of those that it is not", in.Kind, f.ExpectedTubes)
		}
	} else if others = append(others, one); len(others) > mostExpectations {
		others = others[1:]
	}
	x.all = others
	return none, nil
}
