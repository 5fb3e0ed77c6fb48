package main

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A reloader puts a changed configuration into force while the server runs.
type reloader struct {
	line    config.CommandLine
	started *config.Settings // that the server was started with

	log      *slog.Logger
	level    *slog.LevelVar // of log
	security *security
	queue    *queue
	server   *server.Server
}

// reload reads the configuration again and puts into force what can be changed without
// a restart. If the configuration is wrong, nothing changes.
func (r *reloader) reload() {
	s, policy, limits, err := r.read()
	if err != nil {
		r.log.Error("the configuration is wrong; the old one stays in force", "err", err)
		return
	}
	for _, source := range r.security.certs {
		if err := source.Reload(); err != nil {
			r.log.Error("a certificate cannot be used; the old one stays in force", "err", err)
		}
	}
	r.security.policy.Store(policy)
	r.queue.broker.Call(func(e *engine.Engine, _ int64) { e.SetLimits(limits) })
	r.server.SetLimits(s.Options.ClientLimits())
	r.level.Set(s.Options.LogLevel())
	r.log.Info("the configuration was read again")
	if names := r.needRestart(s); len(names) > 0 {
		r.log.Warn("some settings have changed that take effect with the next restart", "settings", strings.Join(names, ", "))
	}
}

func (r *reloader) read() (s *config.Settings, p *access.Policy, l engine.Limits, err error) {
	if s, err = r.line.Read(); err != nil {
		return nil, nil, l, err
	}
	if p, err = s.Options.Policy(); err != nil {
		return nil, nil, l, err
	}
	if err = maySucceed(r.security.policy.Load(), p); err != nil {
		return nil, nil, l, err
	}
	l, err = s.Options.QueueLimits()
	return s, p, l, err
}

// maySucceed refuses a policy that switches security off: the file may just be written,
// and be empty at this moment.
func maySucceed(old, p *access.Policy) error {
	switch {
	case old.Known() > 0 && p.Known() == 0:
		return errors.New("the last [[identity]] has gone: to let everybody in takes a restart")
	case old.HasRules() && !p.HasRules():
		return errors.New("the last [[rule]] has gone: to let everybody do everything takes a restart")
	}
	return nil
}

// reloadable are the settings that take effect without a restart.
var reloadable = []string{"verbose", "max-memory", "max-tubes", "max-watched", "max-connections-per-address", "max-commands-per-second"}

// needRestart returns the names of settings that have changed and that only a restart puts
// into force.
func (r *reloader) needRestart(now *config.Settings) []string {
	names := slices.DeleteFunc(now.Changed(r.started), func(name string) bool { return slices.Contains(reloadable, name) })
	if !reflect.DeepEqual(r.started.Options.Tables.Listeners, now.Options.Tables.Listeners) {
		names = append(names, "[[listener]]")
	}
	if !r.security.on && now.Options.Tables.Secure() {
		names = append(names, "the first [[identity]] or [[rule]]")
	}
	return names
}
