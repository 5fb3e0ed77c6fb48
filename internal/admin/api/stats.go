package api

import (
	"net/http"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Stats are those of the whole server.
type Stats struct {
	Version         string            `json:"version"`
	Uptime          int64             `json:"uptime"` // s
	Draining        bool              `json:"draining"`
	Jobs            JobCounts         `json:"jobs"`
	Urgent          uint64            `json:"urgent"`
	BodyBytes       uint64            `json:"body_bytes"`
	Memory          int64             `json:"memory_bytes"`
	TotalJobs       uint64            `json:"total_jobs"`
	Timeouts        uint64            `json:"timeouts"`
	MaxJobSize      int               `json:"max_job_size"`
	Tubes           uint64            `json:"tubes"`
	Connections     ConnectionCounts  `json:"connections"`
	Commands        map[string]uint64 `json:"commands"`
	RefusedCommands map[string]uint64 `json:"refused_commands"`
	Throttled       uint64            `json:"throttled"`
	Journal         *Journal          `json:"journal,omitempty"`
}

// JobCounts are numbers of jobs by state.
type JobCounts struct {
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Delayed  uint64 `json:"delayed"`
	Buried   uint64 `json:"buried"`
}

// ConnectionCounts are numbers of connections: now, and since the start.
type ConnectionCounts struct {
	Current           uint64 `json:"current"`
	Limit             int    `json:"limit"`
	Producers         uint64 `json:"producers"`
	Workers           uint64 `json:"workers"`
	Waiting           uint64 `json:"waiting"`
	Total             uint64 `json:"total"`
	Rejected          uint64 `json:"rejected"`
	RejectedOfAddress uint64 `json:"rejected_of_address"`
	Refused           uint64 `json:"refused"`
}

// Journal is how the journal is.
type Journal struct {
	Health    string `json:"health"` // ok, or what is the matter
	Segments  int    `json:"segments"`
	Bytes     int64  `json:"bytes"`
	LiveBytes int64  `json:"live_bytes"`
}

func getStats(r *request) (reply, error) {
	var s Stats
	err := r.turn(func(e *engine.Engine, _ int64) error {
		st, counts := e.Stats(), r.api.opt.Server.Counts()
		s = Stats{
			Version:    r.api.opt.Version,
			Uptime:     seconds(int64(counts.Uptime)),
			Draining:   e.IsDraining(),
			Jobs:       JobCounts{st.Ready, st.Reserved, st.Delayed, st.Buried},
			Urgent:     st.Urgent,
			BodyBytes:  st.Bytes,
			Memory:     e.Memory(),
			TotalJobs:  st.TotalJobs,
			Timeouts:   st.Timeouts,
			MaxJobSize: counts.MaxJobSize,
			Tubes:      st.Tubes,
			Connections: ConnectionCounts{
				Current: st.Sessions, Limit: counts.MaxConnections, Producers: st.Producers, Workers: st.Workers, Waiting: st.Waiting,
				Total: st.TotalSessions, Rejected: counts.RejectedConnections, RejectedOfAddress: counts.CrowdedConnections,
				Refused: counts.RefusedConnections,
			},
			Commands:        counts.Commands,
			RefusedCommands: counts.RefusedCommands,
			Throttled:       counts.Throttled,
		}
		if r.api.opt.Journal != nil {
			j := r.api.opt.Journal()
			s.Journal = &j
		}
		return nil
	})
	return reply{body: s}, err
}

func drain(r *request) (reply, error) { return r.setDraining(r.api.opt.Server.Drain) }

func undrain(r *request) (reply, error) { return r.setDraining(r.api.opt.Server.Undrain) }

func (r *request) setDraining(set func()) (reply, error) {
	if err := r.decode(&struct{}{}, true); err != nil {
		return reply{}, err
	}
	set()
	return reply{status: http.StatusNoContent}, nil
}

// errNoJournal is the answer to what concerns a journal.
var errNoJournal = problemf(http.StatusConflict, "there is no journal: the jobs are in memory only")

func rewriteJournal(r *request) (reply, error) {
	if err := r.decode(&struct{}{}, true); err != nil {
		return reply{}, err
	}
	if r.api.opt.RewriteJournal == nil {
		return reply{}, errNoJournal
	}
	err := r.turn(func(*engine.Engine, int64) error {
		r.api.opt.RewriteJournal()
		return nil
	})
	return reply{status: http.StatusAccepted}, err
}

// seconds returns whole seconds, as all of the protocol's times are.
func seconds(ns int64) int64 { return ns / int64(time.Second) }
