package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

func (r *request) getStats(*admin.None) (admin.Stats, error) {
	var s admin.Stats
	err := r.turn(func(e *engine.Engine, _ int64) error {
		st, counts := e.Stats(), r.api.opt.Server.Counts()
		s = admin.Stats{
			Version:    r.api.opt.Version,
			Uptime:     seconds(int64(counts.Uptime)),
			Draining:   e.IsDraining(),
			Jobs:       admin.JobCounts{Ready: st.Ready, Reserved: st.Reserved, Delayed: st.Delayed, Buried: st.Buried},
			Urgent:     st.Urgent,
			BodyBytes:  st.Bytes,
			Memory:     e.Memory(),
			TotalJobs:  st.TotalJobs,
			Timeouts:   st.Timeouts,
			MaxJobSize: counts.MaxJobSize,
			Tubes:      st.Tubes,
			Connections: admin.ConnectionCounts{
				Current: st.Sessions, Limit: counts.MaxConnections, Producers: st.Producers, Workers: st.Workers, Waiting: st.Waiting,
				Total: st.TotalSessions, RejectedOfAddress: counts.CrowdedConnections,
				Refused: counts.RefusedConnections,
			},
			Commands:        counts.Commands,
			RefusedCommands: counts.RefusedCommands,
			Journal:         r.api.journal(),
		}
		return nil
	})
	return s, err
}

// journal returns the state of the journal, or nil if there is no journal. It must be
// called in a turn.
func (a *API) journal() *admin.Journal {
	if a.opt.Journal == nil {
		return nil
	}
	j := a.opt.Journal()
	return &admin.Journal{Health: cmp.Or(j.Health, "ok"), Segments: j.Segments, Bytes: j.Bytes, LiveBytes: j.LiveBytes}
}

func (r *request) drain(*admin.None) (none admin.None, err error) {
	if !r.api.opt.Server.SetDraining(true) {
		return none, errNotLeading
	}
	return none, nil
}

func (r *request) undrain(*admin.None) (none admin.None, err error) {
	if !r.api.opt.Server.SetDraining(false) {
		return none, errNotLeading
	}
	return none, nil
}

// errNoJournal is the error of operations that need a journal.
var errNoJournal = problemf(http.StatusConflict, "there is no journal: the jobs are in memory only")

func (r *request) rewriteJournal(*admin.None) (none admin.None, err error) {
	if r.api.opt.RewriteJournal == nil {
		return none, errNoJournal
	}
	err = r.turn(func(*engine.Engine, int64) error {
		r.api.opt.RewriteJournal()
		return nil
	})
	return none, err
}

// seconds converts ns to whole seconds, as in all times of the protocol.
func seconds(ns int64) int64 { return ns / int64(time.Second) }
