package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/policy"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A plan is the validated form of the settings. The server creates it before it opens
// sockets or the journal.
type plan struct {
	version   string           // version of the program
	settings  *config.Settings // settings at the start
	opt       *config.Options  // options in settings
	log       *slog.Logger
	endpoints []config.Endpoint
	security  *security
	rules     rules
	account   *account      // nil if the user does not change
	others    []otherServer // other servers in the console
}

// rules is the part of the plan that a reload replaces.
type rules struct {
	access    *access.Policy
	limits    engine.Limits
	policies  *policy.Set
	schedules map[string]string
}

// rulesOf parses the rules and checks the other tables of the configuration file.
func rulesOf(opt *config.Options) (r rules, err error) {
	var errs [5]error
	r.access, errs[0] = opt.Policy()
	r.limits, errs[1] = opt.QueueLimits()
	r.policies, errs[2] = opt.TubePolicies()
	r.schedules, errs[3] = opt.Schedules()
	_, errs[4] = opt.OtherServers()
	return r, cmp.Or(errs[:]...)
}

// newPlan returns the plan for s, or an error if a server could not start with these
// settings.
func newPlan(version string, s *config.Settings, log *slog.Logger) (*plan, error) {
	opt := s.Options
	p := &plan{version: version, settings: s, opt: opt, log: log}
	var err error
	if p.endpoints, err = opt.Endpoints(); err != nil {
		return nil, err
	}
	if p.rules, err = rulesOf(opt); err != nil {
		return nil, err
	}
	if p.security, err = newSecurity(opt, p.rules.access, p.endpoints, log); err != nil {
		return nil, err
	}
	if p.account, err = lookupAccount(opt.User); err != nil {
		return nil, err
	}
	p.others, err = readOthers(opt)
	return p, err
}

// engine returns the options of the engine.
func (p *plan) engine() engine.Options {
	return engine.Options{Limits: p.rules.limits, LimitReached: logLimits(p.log), Policies: p.rules.policies, PolicyActed: logPolicies(p.log),
		Schedules: p.rules.schedules, CompileSchedule: schedule.CompileText}
}

// Check returns an error if a server could not start with these settings, and writes
// warnings about them to w.
func Check(s *config.Settings, w io.Writer) error {
	p, err := newPlan("", s, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := p.checkAddresses(); err != nil {
		return err
	}
	if _, err := belongsToMember(&s.Options.Journal); err != nil {
		return err
	}
	for _, warning := range slices.Concat(certificateWarnings(p.security.expiries(), time.Now()), otherWarnings(p.others), p.rules.policies.Warnings()) {
		fmt.Fprintln(w, "warning:", warning)
	}
	fmt.Fprintln(w, "the configuration is good")
	return nil
}

// checkAddresses returns an error if this machine lacks an address that a start needs.
func (p *plan) checkAddresses() error {
	check := func(option string, a server.Address, err error) error {
		if err == nil {
			err = a.Check(context.Background())
		}
		if err != nil {
			return exit.WithCode(exit.Socket, fmt.Errorf("%s%w%s", option, err, hint(err)))
		}
		return nil
	}
	for _, e := range p.endpoints {
		if err := check("", e.Address, nil); err != nil && !e.Optional {
			return err
		}
	}
	if p.opt.Admin.Addr != "" {
		a, err := p.opt.Admin.Address()
		if err := check("--admin: ", a, err); err != nil {
			return err
		}
	}
	if path := p.opt.Admin.Socket; path != "" && path != config.NoSocket {
		a, err := server.ParseAddress("unix:"+path, "")
		return check("--admin-socket: ", a, err)
	}
	return nil
}
