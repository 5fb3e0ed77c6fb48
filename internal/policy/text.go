package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The run-time settings of a pattern are stored as text: lines such as max-attempts=5,
// sorted by name.

const maxText = 256 // maximum length of a value, in bytes

// CheckPattern returns an error if a pattern cannot match a tube.
func CheckPattern(pattern string) error {
	if !wire.ValidTube([]byte(exampleOf(pattern))) {
		return fmt.Errorf("%.220q matches no tube: want 1 to %d characters of the names of tubes, * for any or ? for one", pattern, wire.MaxTube)
	}
	return nil
}

// Parse returns the settings in a text.
func Parse(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[name] = value
	}
	return all
}

// Edit returns text with some settings set and others removed. It stores a duration that
// starts now, such as a pause, as its end time.
func Edit(text string, set map[string]string, unset []string, now time.Time) (string, error) {
	all := Parse(text)
	for _, name := range unset {
		if _, err := named(name); err != nil && all[name] == "" {
			return "", err
		}
		delete(all, name)
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value, err := edited(name, set[name], now)
		wrong = append(wrong, err)
		all[name] = value
	}
	if err := errors.Join(wrong...); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s=%s\n", name, all[name])
	}
	return b.String(), nil
}

// edited checks the new value of a setting and formats it as text.
func edited(name, text string, now time.Time) (string, error) {
	s, err := named(name)
	if err != nil {
		return "", err
	}
	value := s.fromNow(strings.TrimSpace(text), now)
	v, err := s.parse(value)
	switch {
	case err != nil && s.kind == until:
		return "", fmt.Errorf("%w; or for how long, such as 1h30m or 2d", err)
	case err != nil:
		return "", err
	case s.isOver(v, now):
		return "", fmt.Errorf("%s: %s has passed", name, value)
	case len(value) > maxText:
		return "", fmt.Errorf("%s: the value has more than %d characters", name, maxText)
	}
	return value, nil
}

// With implements [engine.Policies].
func (s *Set) With(pattern, text string) engine.Policies {
	with := &Set{file: s.file, runtime: s.runtime.without(pattern), shared: make(map[engine.Policy]*engine.Policy)}
	if text == "" {
		return with
	}
	r := &Rule{Pattern: pattern}
	all := Parse(text)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		of, err := named(name)
		if err != nil {
			continue // of a later version
		}
		if v, err := of.parse(all[name]); err == nil {
			r.settings = append(r.settings, given{of, all[name], v})
		}
	}
	with.runtime.add(r)
	return with
}
