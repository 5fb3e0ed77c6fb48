package daemon

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A reloader applies a changed configuration while the server runs.
type reloader struct {
	*plan      // plan at the start
	line       config.CommandLine
	serverInfo *serverInfo    // serverInfo receives the settings that were read last
	level      *slog.LevelVar // level of the log
	queue      *queue
	server     *server.Server
}

// reload reads the configuration again and applies the settings that can change without a
// restart. If the configuration is invalid, reload changes nothing.
func (r *reloader) reload() {
	s, now, err := r.read()
	if err != nil {
		r.log.Error("invalid configuration; keeping the previous one", "err", err)
		return
	}
	r.queue.broker.Configure(func(e *engine.Engine) {
		e.SetLimits(now.limits)
		e.SetPolicies(now.policies)
		e.SetSchedules(now.schedules)
	})
	r.security.SetConnectionsPerAddress(s.Options.Server.ConnectionsPerAddress)
	r.level.Set(s.Options.LogLevel())
	r.serverInfo.latest.Store(s)
	r.log.Info("the configuration was read again")
	for _, warning := range certificateWarnings(r.security.expiries(), time.Now()) { // expiries logs failures
		r.log.Warn(warning)
	}
	if names := r.needRestart(s); len(names) > 0 {
		r.log.Warn("some settings have changed that take effect with the next restart", "settings", strings.Join(names, ", "))
	}
}

// read reads the configuration and, if it is valid, applies its access policy.
func (r *reloader) read() (s *config.Settings, now rules, err error) {
	if s, err = r.line.Read(); err != nil {
		return nil, now, err
	}
	if now, err = rulesOf(s.Options); err != nil {
		return nil, now, err
	}
	return s, now, r.security.Replace(now.access)
}

// reloadable contains the settings that take effect without a restart.
var reloadable = []string{"verbose", "max-memory", "max-tubes", "max-watched", "max-connections-per-address"}

// needRestart returns the names of the changed settings that take effect only at the next
// start.
func (r *reloader) needRestart(now *config.Settings) []string {
	names := slices.DeleteFunc(now.Changed(r.settings), func(name string) bool { return slices.Contains(reloadable, name) })
	if !reflect.DeepEqual(r.opt.Tables.Listeners, now.Options.Tables.Listeners) {
		names = append(names, "[[listener]]")
	}
	if !reflect.DeepEqual(r.opt.Tables.Servers, now.Options.Tables.Servers) {
		names = append(names, "[[console-server]]")
	}
	if !r.security.Enabled() && now.Options.Tables.Secure() {
		names = append(names, "the first [[identity]] or [[rule]]")
	}
	return names
}
