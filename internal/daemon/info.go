package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/config"
)

// serverInfo provides the settings, listeners and certificates that the API reports.
type serverInfo struct {
	plan      *plan // settings at the start
	since     time.Time
	latest    atomic.Pointer[config.Settings] // settings read last
	listeners []listening
	admin     []listening
}

func newServerInfo(p *plan, listeners []listening, pages *adminServer) *serverInfo {
	f := &serverInfo{plan: p, since: time.Now(), listeners: listeners}
	if pages != nil {
		f.admin = pages.listeners
	}
	f.latest.Store(p.settings)
	return f
}

// Info returns the current description of the server.
func (f *serverInfo) Info() admin.Server {
	out := admin.Server{
		Version: f.plan.version, Go: runtime.Version(), Host: hostname(), PID: os.Getpid(), Started: f.since.UTC().Format(time.RFC3339),
		Settings: f.settings(),
	}
	out.Tables, _ = f.tables().Text()
	for _, l := range f.listeners {
		out.Listeners = append(out.Listeners, l.fact("clients"))
	}
	for _, l := range f.admin {
		out.Listeners = append(out.Listeners, l.fact("admin"))
	}
	for _, e := range f.plan.security.expiries() {
		out.Certificates = append(out.Certificates, admin.Certificate{
			File: e.File, Begins: e.Begin.UTC().Format(time.RFC3339), Ends: e.End.UTC().Format(time.RFC3339), Soon: e.Soon(time.Now()),
		})
	}
	if dir := f.plan.opt.Journal.Dir; dir != "" {
		out.Journal = &admin.JournalFacts{Directory: dir}
	}
	return out
}

// settings returns the settings in force. Reloadable settings have the values that were
// read last.
func (f *serverInfo) settings() (all []admin.Setting) {
	started, _ := f.plan.settings.Rows() // parsed from text, so they can be formatted
	latest, _ := f.latest.Load().Rows()
	for _, r := range started {
		if slices.Contains(reloadable, r.Name) {
			r = latest[slices.IndexFunc(latest, func(l config.Row) bool { return l.Name == r.Name })]
		}
		all = append(all, admin.Setting(r))
	}
	return all
}

// tables returns the configuration tables in force.
func (f *serverInfo) tables() config.Tables {
	t, started := f.latest.Load().Options.Tables, f.plan.opt.Tables
	t.Listeners, t.Servers = started.Listeners, started.Servers
	if !f.plan.security.Enabled() {
		t.Identities, t.Rules = started.Identities, started.Rules
	}
	return t
}

// sharedSettings contains the settings that should be equal on all members of a cluster.
// The leader's values apply to the clients of all members, or affect the election of a
// leader.
var sharedSettings = []string{"max-job-size", "compat", "max-memory", "max-tubes", "max-watched", "cluster-fast-failover"}

// shared returns the values that should be equal on all members, by name: the values of
// settings, and hashes of tables.
func (f *serverInfo) shared() map[string]string {
	all := make(map[string]string)
	for _, s := range f.settings() {
		if slices.Contains(sharedSettings, s.Name) {
			all[s.Name] = s.Value
		}
	}
	t := f.tables()
	for name, table := range map[string]any{"[[identity]]": t.Identities, "[[rule]]": t.Rules, "[[limit]]": t.Limits, "[[policy]]": t.Policies, "[[schedule]]": t.Schedules} {
		text, _ := json.Marshal(table) // it contains only texts and numbers
		sum := sha256.Sum256(text)
		all[name] = hex.EncodeToString(sum[:8])
	}
	return all
}

// limitOf returns the name of the table that limits a tube.
func (f *serverInfo) limitOf(tube string) string {
	t := f.tables()
	return t.LimitOf(tube)
}

// fact returns the description of the listener for the API.
func (l listening) fact(serves string) admin.Listener {
	out := admin.Listener{
		Address: describe(l.Addr()), Serves: serves, TLS: l.terms.TLS.Cert != "", ClientCerts: l.terms.TLS.ClientCA != "",
		RequireAuth: l.terms.Required, Networks: []string{},
	}
	for _, n := range l.terms.Networks {
		out.Networks = append(out.Networks, n.String())
	}
	return out
}
