// Package policy has the settings of tube policies, and finds out which of them hold for a
// tube. What they do is the business of the engine.
//
//	set, err := policy.New([]policy.Config{{Tubes: []string{"mail-*"}, Settings: map[string]any{"max-attempts": 5}}})
//	e.SetPolicies(set.Lookup())
//
// Several policies may be about a tube: each of its settings is that of the most specific pattern which
// has it. The exact name is the most specific one, then the pattern with the longest text before its
// first * or ?, then the later one.
//
// The settings are a table (settings.go); start reading there.
package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Config is a policy as somebody writes it.
type Config struct {
	Tubes    []string       // patterns: * is any characters, ? is one
	Settings map[string]any // by name, as TOML has the values, or as text
}

// A Set is all policies of a server. It does not change, and any goroutine may use it.
type Set struct {
	rules []rule // the most specific ones last

	mu  sync.Mutex
	all map[string]*engine.Policy // by which rules are about the tube
}

// A rule is what a policy says of the tubes of one of its patterns.
type rule struct {
	pattern  string
	tubes    access.Pattern
	policy   int // its number in the file, from 1
	settings []given
}

// given is a setting with its value.
type given struct {
	*Setting
	text  string
	value any
}

// New returns the set of these policies.
func New(configs []Config) (*Set, error) {
	s := &Set{all: make(map[string]*engine.Policy)}
	for i, c := range configs {
		if err := s.add(i+1, c); err != nil {
			return nil, fmt.Errorf("policy %d: %w", i+1, err)
		}
	}
	slices.SortStableFunc(s.rules, func(a, b rule) int { return cmp.Compare(a.literal(), b.literal()) })
	return s, nil
}

func (s *Set) add(number int, c Config) error {
	var settings []given
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no setting %q", name)
		}
		v, err := Settings[i].parse(c.Settings[name])
		if err != nil {
			return err
		}
		settings = append(settings, given{&Settings[i], written(c.Settings[name]), v})
	}
	if _, err := access.NewPattern(c.Tubes); err != nil {
		return err
	}
	if len(settings) == 0 {
		return fmt.Errorf("it has no setting")
	}
	for _, glob := range c.Tubes {
		tubes, err := access.NewPattern([]string{glob})
		if err != nil {
			return err
		}
		s.rules = append(s.rules, rule{glob, tubes, number, settings})
	}
	return nil
}

// written returns a value as text.
func written(v any) string {
	if list, ok := v.([]any); ok {
		words := make([]string, len(list))
		for i, w := range list {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, ", ")
	}
	return fmt.Sprint(v)
}

// literal returns how long the text before the first * or ? is; that of an exact name is longer than any.
func (r *rule) literal() int {
	if n := strings.IndexAny(r.pattern, "*?"); n >= 0 {
		return n
	}
	return 1 << 10
}

// Lookup returns Of for the engine: nil if there is no policy.
func (s *Set) Lookup() func(tube string) *engine.Policy {
	if len(s.rules) == 0 {
		return nil
	}
	return s.Of
}

// Of returns the policy of a tube, or nil. Tubes of which the same rules say something share one.
func (s *Set) Of(tube string) *engine.Policy {
	var key []byte
	for i := range s.rules {
		if s.rules[i].tubes.Matches(tube) {
			key = append(key, byte(i), byte(i>>8))
		}
	}
	if key == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.all[string(key)]
	if p == nil {
		p = s.policy(tube)
		s.all[string(key)] = p
	}
	return p
}

func (s *Set) policy(tube string) *engine.Policy {
	p := new(engine.Policy)
	for _, v := range s.Explain(tube) {
		v.setting.put(p, v.value)
	}
	return p
}

// A Value is that of a setting for a tube, and where it comes from.
type Value struct {
	Name, Text string
	Pattern    string // of the policy; empty: none sets it, the value is the default
	Policy     int    // number of the policy in the file, from 1; 0: none

	setting *Setting
	value   any
}

// Explain returns what each setting is for a tube.
func (s *Set) Explain(tube string) []Value {
	values := make([]Value, len(Settings))
	for i := range Settings {
		of := &Settings[i]
		v, err := of.parse(of.Default)
		if err != nil {
			panic(err) // the table is wrong
		}
		values[i] = Value{Name: of.Name, Text: of.Default, setting: of, value: v}
	}
	for _, r := range s.rules {
		if !r.tubes.Matches(tube) {
			continue
		}
		for _, g := range r.settings {
			for i := range values {
				if values[i].setting == g.Setting {
					values[i] = Value{g.Name, g.text, r.pattern, r.policy, g.Setting, g.value}
				}
			}
		}
	}
	return values
}

// Warnings says what is allowed, and probably not meant.
func (s *Set) Warnings() (warnings []string) {
	for _, r := range s.rules {
		if strings.ContainsAny(r.pattern, "*?") {
			warnings = append(warnings, s.chain(strings.NewReplacer("*", "x", "?", "x").Replace(r.pattern), r)...)
		} else {
			warnings = append(warnings, s.chain(r.pattern, r)...)
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// chain says whether the jobs of a tube that a rule is about are moved on from their dead tube.
func (s *Set) chain(tube string, r rule) []string {
	p := s.Of(tube)
	if p.Exhausted != engine.MoveExhausted || !limited(p) {
		return nil
	}
	dead := strings.ReplaceAll(p.DeadTube, "{tube}", tube)
	if next := s.Of(dead); next != nil && next.Exhausted == engine.MoveExhausted && limited(next) && dead != tube {
		return []string{fmt.Sprintf("policy %d: the dead tube %s of the tubes %s has a policy that moves exhausted jobs on, to %s: "+
			`give dead tubes a [[policy]] with exhausted = "bury", after this one`, r.policy, dead, r.pattern, strings.ReplaceAll(next.DeadTube, "{tube}", dead))}
	}
	return nil
}

// limited reports whether a policy exhausts jobs.
func limited(p *engine.Policy) bool { return p.MaxAttempts|p.MaxTimeouts|p.MaxReleases != 0 }
