package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// A limitTable is a [[limit]] table for tubes.
type limitTable struct {
	Tubes []string `toml:"tubes,omitempty"` // patterns
	Jobs  int64    `toml:"jobs,omitempty"`
	Bytes size     `toml:"bytes,omitempty"`
}

// A size is a number of bytes. In the file it can have a unit.
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

// LimitOf returns the name of the table that limits a tube, or "".
func (t *Tables) LimitOf(tube string) string {
	if i := t.limiting(tube); i >= 0 {
		return fmt.Sprintf("[[limit]] %d, of the tubes %s", i+1, strings.Join(t.Limits[i].Tubes, ", "))
	}
	return ""
}

// limiting returns the index of the [[limit]] that applies to tube, which is the first
// that matches it, or -1.
func (t *Tables) limiting(tube string) int {
	return slices.IndexFunc(t.Limits, func(l limitTable) bool { return access.Pattern(l.Tubes).Matches(tube) })
}

// QueueLimits returns the limits of the queue in the options and tables.
func (opt *Options) QueueLimits() (engine.Limits, error) {
	l := opt.Queue
	if len(opt.Tables.Limits) == 0 {
		return l, nil
	}
	for i, t := range opt.Tables.Limits {
		if t.Jobs < 0 || t.Bytes < 0 || t.Jobs == 0 && t.Bytes == 0 {
			return l, exit.UsageError("%s: limit %d: want jobs or bytes, more than 0", opt.File, i+1)
		}
		if _, err := access.NewPattern(t.Tubes); err != nil {
			return l, exit.UsageError("%s: limit %d: %w", opt.File, i+1, err)
		}
	}
	l.Tube = func(name string) engine.TubeLimits {
		if i := opt.Tables.limiting(name); i >= 0 {
			return engine.TubeLimits{Jobs: opt.Tables.Limits[i].Jobs, Bytes: int64(opt.Tables.Limits[i].Bytes)}
		}
		return engine.TubeLimits{}
	}
	return l, nil
}
