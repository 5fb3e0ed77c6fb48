package main

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// limitOptions say how much the queue takes; 0 is no limit.
type limitOptions struct {
	memory    uint64 // bytes
	tubes     int
	watches   int // tubes of a connection
	ofAddress int // connections
	commands  int // a second, of an identity or address
}

// A limitTable limits tubes.
type limitTable struct {
	Tubes []string `toml:"tubes,omitempty"` // patterns
	Jobs  int64    `toml:"jobs,omitempty"`
	Bytes int64    `toml:"bytes,omitempty"`
}

// clientLimits returns what the options say of clients.
func (opt *serveOptions) clientLimits() server.Limits {
	l := server.Limits{
		ConnectionsPerAddress: opt.limit.ofAddress,
		CommandsPerSecond:     opt.limit.commands,
		OfIdentity:            make(map[string]int),
	}
	for _, id := range opt.tables.Identities {
		if id.Commands != nil {
			l.OfIdentity[id.Name] = *id.Commands
		}
	}
	return l
}

// limits returns what the options and the tables say. The first table that has a tube
// counts for it.
func (opt *serveOptions) limits() (engine.Limits, error) {
	l := engine.Limits{Memory: int64(opt.limit.memory), Tubes: opt.limit.tubes, Watches: opt.limit.watches}
	if len(opt.tables.Limits) == 0 {
		return l, nil
	}
	type limit struct {
		tubes access.Pattern
		engine.TubeLimits
	}
	var limits []limit
	for i, t := range opt.tables.Limits {
		if t.Jobs < 0 || t.Bytes < 0 || t.Jobs == 0 && t.Bytes == 0 {
			return l, fmt.Errorf("%s: limit %d: %w", opt.config, i+1, errors.New("want jobs or bytes, more than 0"))
		}
		limits = append(limits, limit{access.NewPattern(t.Tubes), engine.TubeLimits{Jobs: t.Jobs, Bytes: t.Bytes}})
	}
	l.Tube = func(name string) engine.TubeLimits {
		for _, l := range limits {
			if l.tubes.Matches(name) {
				return l.TubeLimits
			}
		}
		return engine.TubeLimits{}
	}
	return l, nil
}
