// Package policy parses the settings of tube policies, and selects the settings that
// apply to a tube. The engine implements their effects.
//
//	set, err := policy.New([]policy.Config{{Tubes: []string{"mail-*"}, Settings: map[string]any{"max-attempts": 5}}})
//	e.SetPolicies(set)
//
// Several policies can apply to a tube. For each setting, run-time policies take
// precedence over the policies of the configuration file. Within a source, the most
// specific pattern with the setting applies. An exact name is more specific than a
// pattern, and a pattern with longer text before its first * or ? is more specific than
// another. If two patterns of the file are equally specific, the later one applies. Of
// two such run-time patterns, the longer one applies, then the later one in byte order.
//
// The settings are a table in settings.go; start reading there. text.go contains the
// run-time settings.
package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Config is a policy as written in the configuration.
type Config struct {
	Tubes    []string       // patterns: * matches any characters, ? one
	Settings map[string]any // by name; the values are TOML values or texts
}

// A Set contains all policies of a server. It is immutable and safe for concurrent use.
type Set struct {
	file, runtime layer

	mu     sync.Mutex
	shared map[engine.Policy]*engine.Policy // at most maxShared
}

// maxShared is the maximum number of policies that a Set keeps for tubes to share.
// Overlapping patterns can produce many combinations of settings.
const maxShared = 10_000

// A layer contains the rules of one source.
type layer struct {
	globs []*Rule // most specific last
	exact []*Rule // names of tubes, in order; of rules with the same name, the later one is last
}

// A Rule is a policy's settings for the tubes of one of its patterns.
type Rule struct {
	Pattern  string
	Number   int    // number of the policy in the file, starting with 1; 0 for a run-time policy
	prefix   string // text of a glob before its first * or ?
	settings []given
}

// A given is a setting with its value.
type given struct {
	*Setting
	text  string
	value any
}

// Settings returns the settings of the rule as text.
func (r *Rule) Settings() map[string]string {
	all := make(map[string]string, len(r.settings))
	for _, g := range r.settings {
		all[g.Name] = g.text
	}
	return all
}

// New returns the set of configured policies.
func New(configs []Config) (*Set, error) {
	s := &Set{shared: make(map[engine.Policy]*engine.Policy)}
	for i, c := range configs {
		if err := s.add(i+1, c); err != nil {
			return nil, fmt.Errorf("policy %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *Set) add(number int, c Config) error {
	var settings []given
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		of, err := named(name)
		if err != nil {
			return err
		}
		text := written(c.Settings[name])
		v, err := of.parse(text)
		if err != nil {
			return err
		}
		settings = append(settings, given{of, text, v})
	}
	if _, err := access.NewPattern(c.Tubes); err != nil {
		return err
	}
	if len(settings) == 0 {
		return fmt.Errorf("it has no setting")
	}
	for _, glob := range c.Tubes {
		if err := CheckPattern(glob); err != nil {
			return err
		}
		s.file.add(&Rule{Pattern: glob, Number: number, settings: settings})
	}
	return nil
}

// named returns the setting with a name.
func named(name string) (*Setting, error) {
	i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown setting %.40q; the settings are %s", name, strings.Join(Names(), ", "))
	}
	return &Settings[i], nil
}

// written formats a value from TOML as text.
func written(v any) string {
	switch v := v.(type) {
	case []any:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, ", ")
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return fmt.Sprint(v)
}

// isGlob reports whether a pattern is not the name of a tube.
func isGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

// compare orders globs, most specific last. It returns 0 if their order in the file is
// decisive.
func (r *Rule) compare(o *Rule) int {
	if n := cmp.Compare(len(r.prefix), len(o.prefix)); n != 0 || r.Number > 0 {
		return n
	}
	return cmp.Or(cmp.Compare(len(r.Pattern), len(o.Pattern)), strings.Compare(r.Pattern, o.Pattern))
}

// add adds a rule.
func (l *layer) add(r *Rule) {
	list, order := &l.exact, func(o *Rule) int { return strings.Compare(o.Pattern, r.Pattern) }
	if isGlob(r.Pattern) {
		r.prefix = r.Pattern[:strings.IndexAny(r.Pattern, "*?")]
		list, order = &l.globs, func(o *Rule) int { return o.compare(r) }
	}
	at, _ := slices.BinarySearchFunc(*list, r, func(o, _ *Rule) int { return cmp.Or(order(o), -1) }) // after equal rules
	*list = slices.Insert(slices.Clone(*list), at, r)
}

// without returns the layer without the rules for a pattern.
func (l layer) without(pattern string) layer {
	is := func(r *Rule) bool { return r.Pattern == pattern }
	if isGlob(pattern) {
		return layer{slices.DeleteFunc(slices.Clone(l.globs), is), l.exact}
	}
	return layer{l.globs, slices.DeleteFunc(slices.Clone(l.exact), is)}
}

// about returns the rules that apply to a tube, most specific last.
func (s *Set) about(tube string) (rules []*Rule) {
	for _, l := range []*layer{&s.file, &s.runtime} {
		for _, r := range l.globs {
			if strings.HasPrefix(tube, r.prefix) && access.Match(r.Pattern[len(r.prefix):], tube[len(r.prefix):]) {
				rules = append(rules, r)
			}
		}
		at, _ := slices.BinarySearchFunc(l.exact, tube, func(r *Rule, tube string) int { return strings.Compare(r.Pattern, tube) })
		for ; at < len(l.exact) && l.exact[at].Pattern == tube; at++ {
			rules = append(rules, l.exact[at])
		}
	}
	return rules
}

// Rules returns all rules: first those of the file, then those set at run time. Patterns
// precede names of tubes.
func (s *Set) Rules() []*Rule {
	return slices.Concat(s.file.globs, s.file.exact, s.runtime.globs, s.runtime.exact)
}

// Of implements [engine.Policies]. Tubes with the same settings usually share a policy.
func (s *Set) Of(tube string) *engine.Policy {
	rules := s.about(tube)
	if rules == nil {
		return nil
	}
	var p engine.Policy
	for _, v := range defaults() {
		v.put(&p, v.value)
	}
	for _, r := range rules {
		for _, g := range r.settings {
			g.put(&p, g.value)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.shared[p]
	if shared == nil {
		if len(s.shared) >= maxShared {
			clear(s.shared)
		}
		shared = &p
		s.shared[p] = shared
	}
	return shared
}

// A Value is the value of a setting for a tube, with its source.
type Value struct {
	*Setting
	Text string
	Rule *Rule // nil if no rule sets it, so that the value is the default

	value any
}

// defaults returns the default of each setting, as values without a rule.
var defaults = sync.OnceValue(func() []Value {
	values := make([]Value, len(Settings))
	for i := range Settings {
		of := &Settings[i]
		v, err := of.parse(of.Default)
		if err != nil {
			panic(err) // the table is invalid
		}
		values[i] = Value{of, of.Default, nil, v}
	}
	return values
})

// Explain returns the value of each setting for a tube.
func (s *Set) Explain(tube string) []Value {
	values := slices.Clone(defaults())
	for _, r := range s.about(tube) {
		for _, g := range r.settings {
			i := slices.IndexFunc(values, func(v Value) bool { return v.Setting == g.Setting })
			values[i] = Value{g.Setting, g.text, r, g.value}
		}
	}
	return values
}

// Warnings returns warnings about valid but probably unintended settings.
func (s *Set) Warnings() (warnings []string) {
	for _, r := range s.Rules() {
		warnings = append(warnings, s.WarningsOf(r)...)
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// WarningsOf returns the warnings about a rule.
func (s *Set) WarningsOf(r *Rule) (warnings []string) {
	tube := exampleOf(r.Pattern)
	p := s.Of(tube)
	set := r.Settings()
	for _, w := range []struct {
		setting string
		idle    bool
		why     string
	}{
		{"retry-max", p.RetryDelay > p.RetryMax, "is less than retry-delay: each failure waits retry-max"},
		{"retry-delay", p.TTL > 0 && p.RetryDelay >= p.TTL, "is not less than ttl: a job has expired before it is tried again"},
		{"retry-max", p.TTL > 0 && p.RetryDelay > 0 && p.RetryMax >= p.TTL, "is not less than ttl: a job that waits so long has expired before it is tried again"},
		{"keep-buried", p.BuryAtTTL && p.KeepBuried > 0 && p.KeepBuried <= p.TTL, "is not more than ttl: a job that is buried because it expired is deleted soon"},
		{"dead-tube", p.Exhausted != engine.MoveExhausted, `has no effect without exhausted = "move"`},
		{"dead-tube", p.Exhausted == engine.MoveExhausted && DeadTubes(p.DeadTube, tube) == tube, "is the tube itself: exhausted jobs are buried there"},
		{"exhausted", !p.Limited(), "has no effect without max-attempts, max-timeouts or max-releases"},
		{"retry-factor", p.RetryDelay == 0, "has no effect without retry-delay"},
		{"retry-jitter", p.RetryDelay == 0, "has no effect without retry-delay"},
		{"retry-on", p.RetryDelay == 0, "has no effect without retry-delay"},
		{"snooze", !p.Limited() && p.RetryDelay == 0, "has no effect without a maximum of attempts or a retry-delay"},
		{"burst", p.Interval == 0, "has no effect without rate"},
		{"unique-while", p.Unique == nil, "has no effect without unique"},
		{"unique-mode", p.Unique == nil, "has no effect without unique"},
		{"unique-mode", p.Unique != nil && p.UniqueMode != engine.KeepFirst && p.UniqueWhile != engine.WhileWaiting,
			`drops a job whose duplicate is reserved; use unique-while = "waiting" to put it`},
	} {
		if set[w.setting] != "" && w.idle {
			warnings = append(warnings, fmt.Sprintf("%s: %s %s", r, w.setting, w.why))
		}
	}
	return warnings
}

// exampleOf returns the name of a tube that matches a pattern.
func exampleOf(pattern string) string {
	return strings.NewReplacer("*", "x", "?", "x").Replace(pattern)
}

// Runtime returns the rule that was set for a pattern at run time, or nil.
func (s *Set) Runtime(pattern string) *Rule {
	for _, r := range slices.Concat(s.runtime.globs, s.runtime.exact) {
		if r.Pattern == pattern {
			return r
		}
	}
	return nil
}

// String returns a text that identifies the rule.
func (r *Rule) String() string {
	if r.Number == 0 {
		return "the policy of " + r.Pattern + ", set while the server ran"
	}
	return fmt.Sprintf("policy %d, of the tubes %s", r.Number, r.Pattern)
}
