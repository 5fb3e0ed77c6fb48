package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A limitTable limits tubes.
type limitTable struct {
	Tubes []string `toml:"tubes,omitempty"` // patterns
	Jobs  int64    `toml:"jobs,omitempty"`
	Bytes size     `toml:"bytes,omitempty"`
}

// A size is a number of bytes, in the file also with its unit.
type size int64

// UnmarshalTOML implements toml.Unmarshaler.
func (s *size) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*s = size(v)
		return nil
	case string:
		n, err := parseBytes(v)
		*s = size(n)
		return err
	}
	return errors.New("want bytes")
}

// LimitOf returns which of the tables limits a tube; empty: none.
func (t *Tables) LimitOf(tube string) string {
	for i, l := range t.Limits {
		if access.Pattern(l.Tubes).Matches(tube) {
			return fmt.Sprintf("[[limit]] %d, of the tubes %s", i+1, strings.Join(l.Tubes, ", "))
		}
	}
	return ""
}

// ClientLimits returns what the options say of clients.
func (opt *Options) ClientLimits() access.Limits {
	l := opt.Server.Limits
	l.OfIdentity = make(map[string]int)
	for _, id := range opt.Tables.Identities {
		if id.Commands != nil {
			l.OfIdentity[id.Name] = *id.Commands
		}
	}
	return l
}

// QueueLimits returns what the options and the tables say of the queue. The first table
// that has a tube counts for it.
func (opt *Options) QueueLimits() (engine.Limits, error) {
	l := opt.Queue
	if len(opt.Tables.Limits) == 0 {
		return l, nil
	}
	type limit struct {
		tubes access.Pattern
		engine.TubeLimits
	}
	var limits []limit
	for i, t := range opt.Tables.Limits {
		if t.Jobs < 0 || t.Bytes < 0 || t.Jobs == 0 && t.Bytes == 0 {
			return l, kit.UsageError("%s: limit %d: want jobs or bytes, more than 0", opt.File, i+1)
		}
		tubes, err := access.NewPattern(t.Tubes)
		if err != nil {
			return l, kit.UsageError("%s: limit %d: %w", opt.File, i+1, err)
		}
		limits = append(limits, limit{tubes, engine.TubeLimits{Jobs: t.Jobs, Bytes: int64(t.Bytes)}})
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
