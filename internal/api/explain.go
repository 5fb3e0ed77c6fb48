package api

import (
	"context"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// explainTube returns the state of a tube and its findings in a sentence.
func (r *request) explainTube(*admin.OfTube) (out admin.Explanation, err error) {
	var t *tubes.Tube
	err = r.turn(func(e *engine.Engine, now int64) (err error) {
		t, err = r.theTube(e, now)
		return err
	})
	if err != nil {
		return out, err
	}
	one, err := r.tubes().Of(t)
	if err != nil {
		return out, err
	}
	s, err := r.serverHealth()
	one.Refuses = s.Refuses()
	out.Text, out.Severity = one.Why()
	p, _ := r.explainPolicy(nil) // fails only while the server stops
	var set []string
	for _, s := range p.Settings {
		if s.Source != "default" && s.Value != s.Default && !s.Hidden {
			set = append(set, s.Name+"="+s.Value)
		}
	}
	out.Policy = strings.Join(set, " ")
	return out, err
}

// A holder is a session that holds jobs.
type holder struct {
	id       uint64
	session  *engine.Session
	engine   *engine.Engine // engine of the session
	at       int64          // time in ns at which the session was examined
	holds    []engine.Hold
	watching engine.Names
}

// mostWatched is the maximum number of watched tubes with which a session that holds jobs
// counts as a busy worker of each tube.
const mostWatched = 64

// eachHolder calls tell for each session that holds jobs.
func (a *API) eachHolder(ctx context.Context, tell func(*holder)) error {
	at := 0
	return look(ctx, a, func(e *engine.Engine, now int64, see func(holder)) (more bool) {
		var sessions []*engine.Session
		sessions, at = e.Sessions(at, perTurn)
		for _, s := range sessions {
			if holds := e.Holds(now, s, server.MaxNamedJobs); len(holds) > 0 {
				see(holder{s.ID(), s, e, now, holds, s.WatchedNames()})
			}
		}
		return at > 0
	}, tell)
}

// workers returns the workers of each tube, by tube name. It omits the holder and the
// other tube's name if the client has no right to see them.
func (r *request) workers() (map[string]*health.Workers, error) {
	all := make(map[string]*health.Workers)
	of := func(tube string) *health.Workers {
		if all[tube] == nil {
			all[tube] = new(health.Workers)
		}
		return all[tube]
	}
	everywhere := r.caller.Identity.Meets(statsEverywhere)
	err := shared(r, &r.api.holders, r.api.eachHolder, func(h *holder) {
		held := make(map[string]bool)
		for _, hold := range h.holds {
			held[hold.Tube] = true
			if w := of(hold.Tube); time.Duration(hold.For) > w.HeldFor {
				w.HeldFor, w.Touches = time.Duration(hold.For), hold.Touches
				if everywhere {
					w.Holder = h.id
				}
			}
		}
		with := ""
		if len(held) == 1 && r.caller.Identity.Meets(statsNamed, h.holds[0].Tube) {
			with = h.holds[0].Tube
		}
		for i := range min(h.watching.Len(), mostWatched) {
			tube := h.watching.At(i)
			w := of(tube)
			switch {
			case held[tube]:
				w.Busy++
				continue
			case w.Elsewhere == 0:
				w.With = with
			case w.With != with:
				w.With = ""
			}
			w.Elsewhere++
		}
	})
	return all, err
}
