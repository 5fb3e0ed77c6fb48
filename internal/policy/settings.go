package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Setting describes a setting of a policy, for the configuration file and its check,
// the commands, and the documentation.
type Setting struct {
	Name    string
	Default string // value if it is not set
	Doc     string // one sentence
	kind    kind
	bounds  [2]float64 // bounds of a number, or of a duration in seconds
	words   []string   // values of a choice
	put     func(p *engine.Policy, v any)
}

// A kind is the syntax and the type of a value.
type kind uint8

const (
	count   kind = iota // uint32
	period              // int64, ns
	number              // float64
	choice              // int, the index of a word
	choices             // int, a set of bits
	tube                // string
	rate                // int64, ns between two events
	until               // int64, ns since 1970; 0 means no pause, math.MaxInt64 never ends
	key                 // *engine.Key, or nil
)

// DeadTube is the name of the setting that contains the tube of exhausted jobs.
const (
	DeadTube        = "dead-tube"
	DefaultDeadTube = "{tube}.dead"
)

// DeadTubes returns the dead tube of a tube, or the pattern of the dead tubes for a
// pattern. dead is the value of the setting.
func DeadTubes(dead, pattern string) string { return strings.ReplaceAll(dead, "{tube}", pattern) }

// Settings contains all settings, in the order of the documentation.
var Settings = []Setting{
	{"max-attempts", "0", "Maximum number of reservations before a job is exhausted; 0 means no limit.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxAttempts = v.(uint32) }},
	{"max-timeouts", "0", "Maximum number of expired TTRs before a job is exhausted; 0 means no limit.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxTimeouts = v.(uint32) }},
	{"max-releases", "0", "Maximum number of releases before a job is exhausted; 0 means no limit.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxReleases = v.(uint32) }},
	{"exhausted", "bury", "Action on an exhausted job: bury it, delete it, or move it to the dead tube and bury it there.",
		choice, [2]float64{}, []string{"bury", "delete", "move"}, func(p *engine.Policy, v any) { p.Exhausted = engine.Exhausted(v.(int)) }},
	{DeadTube, DefaultDeadTube, "Destination of exhausted jobs; {tube} stands for the name of the job's tube.",
		tube, [2]float64{}, nil, func(p *engine.Policy, v any) { p.DeadTube = v.(string) }},
	{"retry-delay", "0", "Delay after the first failure; a delay that the worker sets with a release takes precedence.",
		period, [2]float64{0, 30 * 86400}, nil, func(p *engine.Policy, v any) { p.RetryDelay = v.(int64) }},
	{"retry-factor", "2", "Multiplier of the delay after each further failure.",
		number, [2]float64{1, 10}, nil, func(p *engine.Policy, v any) { p.RetryFactor = v.(float64) }},
	{"retry-max", "1h", "Maximum delay.",
		period, [2]float64{1, 365 * 86400}, nil, func(p *engine.Policy, v any) { p.RetryMax = v.(int64) }},
	{"retry-jitter", "0.25", "Maximum fraction by which a delay is shortened, which varies from job to job.",
		number, [2]float64{0, 1}, nil, func(p *engine.Policy, v any) { p.RetryJitter = v.(float64) }},
	{"retry-on", "timeout, close, release", "Failures that cause a delay: an expired TTR, a closed connection of the worker, a release.",
		choices, [2]float64{}, []string{"timeout", "close", "release"}, func(p *engine.Policy, v any) { p.RetryOn = engine.Ends(v.(int)) }},
	{"snooze", "0", "Minimum delay of a release that counts neither as an attempt nor as a release; 0 means that each release counts.",
		period, [2]float64{0, 365 * 86400}, nil, func(p *engine.Policy, v any) { p.Snooze = v.(int64) }},
	{"ttl", "0", "Maximum age of a job, counted from its put; 0 means no limit. Workers never get an older job.",
		period, [2]float64{0, 3650 * 86400}, nil, func(p *engine.Policy, v any) { p.TTL = v.(int64) }},
	{"expired", "delete", "Action on a job older than ttl: delete it, or bury it in its tube.",
		choice, [2]float64{}, []string{"delete", "bury"}, func(p *engine.Policy, v any) { p.BuryAtTTL = v.(int) == 1 }},
	{"keep-buried", "0", "Age at which a buried job is deleted, counted from its put; 0 means never.",
		period, [2]float64{0, 3650 * 86400}, nil, func(p *engine.Policy, v any) { p.KeepBuried = v.(int64) }},
	{"paused", "no", "Pause of the tube: permanent, none, or until a time.",
		until, [2]float64{}, []string{"no", "yes"}, func(p *engine.Policy, v any) { p.PausedUntil = v.(int64) }},
	{"max-reserved", "0", "Maximum number of jobs reserved at the same time; 0 means no limit.",
		count, [2]float64{1, 1000000}, nil, func(p *engine.Policy, v any) { p.MaxReserved = v.(uint32) }},
	{"rate", "0", "Average rate of reservations; 0 means no limit.",
		rate, [2]float64{1. / 86400, 100000}, nil, func(p *engine.Policy, v any) { p.Interval = v.(int64) }},
	{"burst", "0", "Number of jobs that can be reserved at once after a quiet period; 0 means one second of rate, and at least 1.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.Burst = v.(uint32) }},
	{"unique", "no", "Part of the body that makes two jobs duplicates: all of it, its first line, or values in JSON.",
		key, [2]float64{}, []string{"no", "body", "line"}, func(p *engine.Policy, v any) { p.Unique = v.(*engine.Key) }},
	{"unique-while", "waiting", "Time during which a job blocks duplicates: while it is ready or delayed; also while it is reserved; or until it leaves the tube.",
		choice, [2]float64{}, []string{"waiting", "active", "present"}, func(p *engine.Policy, v any) { p.UniqueWhile = engine.While(v.(int)) }},
	{"unique-mode", "keep", "Effect of a duplicate put on the waiting job: none; replace its body; or replace its body and restart its delay.",
		choice, [2]float64{}, []string{"keep", "replace", "debounce"}, func(p *engine.Policy, v any) { p.UniqueMode = engine.UniqueMode(v.(int)) }},
}

// Names returns the names of all settings.
func Names() []string {
	names := make([]string, len(Settings))
	for i := range Settings {
		names[i] = Settings[i].Name
	}
	return names
}

// Takes describes the values that the setting accepts.
func (s *Setting) Takes() string {
	switch s.kind {
	case count:
		return fmt.Sprintf("a whole number from %.0f to %.0f, or 0", s.bounds[0], s.bounds[1])
	case number:
		return fmt.Sprintf("a number from %v to %v", s.bounds[0], s.bounds[1])
	case period:
		return fmt.Sprintf("a duration such as 30s or 7d, from %s to %s", formatSeconds(s.bounds[0]), formatSeconds(s.bounds[1]))
	case rate:
		return fmt.Sprintf("a rate such as 100/s, 5/m, 2/h or 1/d, up to %v/s, or 0", s.bounds[1])
	case until:
		return "yes, no, or an end time such as 2027-01-31T08:00:00Z"
	case key:
		return "body, line, a list of JSON pointers such as /data/id, or no"
	case choice:
		return "one of " + strings.Join(s.words, ", ")
	case choices:
		return "a list of " + strings.Join(s.words, ", ")
	}
	return fmt.Sprintf("the name of a tube, of at most %d characters, with {tube} at most once", wire.MaxTube)
}

// Words returns all values that the setting accepts, or nil if there are too many.
func (s *Setting) Words() []string {
	if s.kind == choice {
		return s.words
	}
	return nil
}

func formatSeconds(n float64) string {
	if n >= 86400 {
		return strconv.Itoa(int(n/86400)) + " days"
	}
	return time.Duration(n * 1e9).String()
}

// parse parses the text of a value.
func (s *Setting) parse(text string) (parsed any, err error) {
	for _, r := range text {
		if unicode.IsControl(r) {
			return nil, fmt.Errorf("%s: the value has the control character %q; remove it", s.Name, r)
		}
	}
	if parsed, err = s.read(text); err != nil {
		return nil, fmt.Errorf("%s: want %s, not %.100s", s.Name, s.Takes(), cmp.Or(text, `""`))
	}
	return parsed, nil
}

var errBad = errors.New("bad value")

func (s *Setting) read(text string) (any, error) {
	switch s.kind {
	case count, number, period:
		n, err := s.number(text)
		switch {
		case err != nil || !s.within(n):
			return nil, errBad
		case s.kind == count:
			return uint32(n), nil
		case s.kind == period:
			return int64(n * 1e9), nil
		}
		return n, nil
	case rate:
		return s.interval(text)
	case choice:
		if i := slices.Index(s.words, text); i >= 0 {
			return i, nil
		}
		return nil, errBad
	case choices:
		return s.set(text)
	case until:
		return moment(text)
	case key:
		return keyOf(text)
	}
	if bare := strings.Replace(text, "{tube}", "x", 1); !wire.ValidTube([]byte(bare)) {
		return nil, errBad
	}
	return text, nil
}

// moment parses the end of a pause.
func moment(text string) (int64, error) {
	switch text {
	case "no", "false":
		return 0, nil
	case "yes", "true":
		return math.MaxInt64, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1971 || at.Year() > 2200 {
		return 0, errBad
	}
	return at.UnixNano(), nil
}

// If the setting is an end time and text is a duration, fromNow returns the end of that
// duration, starting now.
func (s *Setting) fromNow(text string, now time.Time) string {
	if d, err := duration.Parse(text); err == nil && s.kind == until && d > 0 {
		return now.Add(d + time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	return text
}

// isOver reports whether a value is a time that has passed.
func (s *Setting) isOver(v any, now time.Time) bool {
	return s.kind == until && v != int64(0) && v.(int64) <= now.UnixNano()
}

// number parses a number, or a duration in seconds.
func (s *Setting) number(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && s.kind == period {
		d, err := duration.Parse(text)
		return d.Seconds(), err
	}
	return n, err
}

// interval parses a rate.
func (s *Setting) interval(text string) (int64, error) {
	per := 1.0
	text, unit, has := strings.Cut(text, "/")
	if has {
		per = map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	}
	times, err := s.number(text)
	switch perSecond := times / per; {
	case err != nil:
		return 0, err
	case perSecond == 0:
		return 0, nil
	case s.within(perSecond):
		return int64(1e9 / perSecond), nil
	}
	return 0, errBad
}

func (s *Setting) within(n float64) bool {
	if s.kind == count {
		return n == math.Trunc(n) && (n == 0 || s.bounds[0] <= n && n <= s.bounds[1])
	}
	return s.bounds[0] <= n && n <= s.bounds[1]
}

// set parses a list of words, which commas separate.
func (s *Setting) set(text string) (bits int, err error) {
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		i := slices.Index(s.words, w)
		if i < 0 {
			return 0, errBad
		}
		bits |= 1 << i
	}
	return bits, nil
}
