package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Setting of a policy. The configuration file, its check, the commands and the
// documentation have what they know of one from here.
type Setting struct {
	Name    string
	Default string // what holds where it is not set
	Doc     string // one sentence
	kind    kind
	bounds  [2]float64 // of a number, or of a duration in seconds
	words   []string   // of a choice
	put     func(p *engine.Policy, v any)
}

// A kind of value: how it is read, and which type it has then.
type kind uint8

const (
	count   kind = iota // uint32
	period              // int64, ns
	number              // float64
	choice              // int, the place of a word
	choices             // int, a set of bits
	tube                // string
	rate                // int64, ns between two
	until               // int64, ns since 1970; 0: not, math.MaxInt64: without end
	key                 // *engine.Key; nil: none
)

// DeadTube is the name of the setting that names the tube of exhausted jobs.
const (
	DeadTube        = "dead-tube"
	DefaultDeadTube = "{tube}.dead"
)

// DeadTubes returns the dead tube of a tube, or a pattern of the dead tubes of the tubes of
// a pattern. dead is a value of the setting.
func DeadTubes(dead, pattern string) string { return strings.ReplaceAll(dead, "{tube}", pattern) }

// Settings are all there are, in the order of the documentation.
var Settings = []Setting{
	{"max-attempts", "0", "How often a job is reserved before it is exhausted; 0 is any number.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxAttempts = v.(uint32) }},
	{"max-timeouts", "0", "How often the TTR of a job runs out before it is exhausted; 0 is any number.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxTimeouts = v.(uint32) }},
	{"max-releases", "0", "How often a job is released before it is exhausted; 0 is any number.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.MaxReleases = v.(uint32) }},
	{"exhausted", "bury", "What becomes of an exhausted job: it is buried in its tube, deleted, or moved to the dead tube and buried there.",
		choice, [2]float64{}, []string{"bury", "delete", "move"}, func(p *engine.Policy, v any) { p.Exhausted = engine.Exhausted(v.(int)) }},
	{DeadTube, DefaultDeadTube, "Where exhausted jobs are moved to; {tube} stands for the name of their tube.",
		tube, [2]float64{}, nil, func(p *engine.Policy, v any) { p.DeadTube = v.(string) }},
	{"retry-delay", "0", "How long a job waits after its first failure, unless a worker releases it with a delay.",
		period, [2]float64{0, 30 * 86400}, nil, func(p *engine.Policy, v any) { p.RetryDelay = v.(int64) }},
	{"retry-factor", "2", "How many times as long a job waits after each further failure.",
		number, [2]float64{1, 10}, nil, func(p *engine.Policy, v any) { p.RetryFactor = v.(float64) }},
	{"retry-max", "1h", "How long a job waits at most.",
		period, [2]float64{1, 365 * 86400}, nil, func(p *engine.Policy, v any) { p.RetryMax = v.(int64) }},
	{"retry-jitter", "0.25", "The part of the delay of which a share is left out that differs from job to job.",
		number, [2]float64{0, 1}, nil, func(p *engine.Policy, v any) { p.RetryJitter = v.(float64) }},
	{"retry-on", "timeout, close, release", "Which failures make a job wait: its TTR runs out, its worker's connection closes, it is released.",
		choices, [2]float64{}, []string{"timeout", "close", "release"}, func(p *engine.Policy, v any) { p.RetryOn = engine.Ends(v.(int)) }},
	{"ttl", "0", "How old a job becomes before it is reserved, from its put on; 0 is any age.",
		period, [2]float64{0, 3650 * 86400}, nil, func(p *engine.Policy, v any) { p.TTL = v.(int64) }},
	{"expired", "delete", "What becomes of a job that is older than ttl: it is deleted, or buried in its tube.",
		choice, [2]float64{}, []string{"delete", "bury"}, func(p *engine.Policy, v any) { p.BuryAtTTL = v.(int) == 1 }},
	{"keep-buried", "0", "How old a buried job becomes before it is deleted, from its put on; 0 is any age.",
		period, [2]float64{0, 3650 * 86400}, nil, func(p *engine.Policy, v any) { p.KeepBuried = v.(int64) }},
	{"paused", "no", "Whether jobs of the tube cannot be reserved, or until when.",
		until, [2]float64{}, []string{"no", "yes"}, func(p *engine.Policy, v any) { p.PausedUntil = v.(int64) }},
	{"max-reserved", "0", "How many jobs of the tube are reserved at the same time; 0 is any number.",
		count, [2]float64{1, 1000000}, nil, func(p *engine.Policy, v any) { p.MaxReserved = v.(uint32) }},
	{"rate", "0", "How many jobs of the tube are reserved in a time, on average; 0 is any number.",
		rate, [2]float64{1. / 86400, 100000}, nil, func(p *engine.Policy, v any) { p.Interval = v.(int64) }},
	{"burst", "0", "How many jobs are reserved at once after a pause; 0 is as many as the rate is in a second, and at least 1.",
		count, [2]float64{1, 10000}, nil, func(p *engine.Policy, v any) { p.Burst = v.(uint32) }},
	{"unique", "no", "What makes two jobs equal, of which only one is put: their bodies, their first lines, or values in bodies that are JSON.",
		key, [2]float64{}, []string{"no", "body", "line"}, func(p *engine.Policy, v any) { p.Unique = v.(*engine.Key) }},
	{"unique-while", "waiting", "As long as what a job keeps equal ones out: it is ready or delayed, or reserved as well, or there at all.",
		choice, [2]float64{}, []string{"waiting", "active", "present"}, func(p *engine.Policy, v any) { p.UniqueWhile = engine.While(v.(int)) }},
	{"unique-mode", "keep", "What the put of an equal job does with the one that waits: nothing, or it has the new body, or that and is delayed anew.",
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

// Takes says which values the setting takes.
func (s *Setting) Takes() string {
	switch s.kind {
	case count:
		return fmt.Sprintf("a whole number from %.0f to %.0f, or 0", s.bounds[0], s.bounds[1])
	case number:
		return fmt.Sprintf("a number from %v to %v", s.bounds[0], s.bounds[1])
	case period:
		return fmt.Sprintf("a duration such as 30s or 7d, from %s to %s", seconds(s.bounds[0]), seconds(s.bounds[1]))
	case rate:
		return fmt.Sprintf("a rate such as 100/s, 5/m, 2/h or 1/d, up to %v/s, or 0", s.bounds[1])
	case until:
		return "yes, no, or the moment when it ends, such as 2027-01-31T08:00:00Z"
	case key:
		return "body, line, a list of JSON pointers such as /data/id, or no"
	case choice:
		return "one of " + strings.Join(s.words, ", ")
	case choices:
		return "a list of " + strings.Join(s.words, ", ")
	}
	return fmt.Sprintf("the name of a tube, of at most %d characters", wire.MaxTube)
}

// Words returns all values that the setting takes, if they are few; else nil.
func (s *Setting) Words() []string {
	if s.kind == choice {
		return s.words
	}
	return nil
}

func seconds(n float64) string {
	if n >= 86400 {
		return strconv.Itoa(int(n/86400)) + " days"
	}
	return time.Duration(n * 1e9).String()
}

// parse reads a value, as TOML has it or as text.
func (s *Setting) parse(v any) (parsed any, err error) {
	if parsed, err = s.read(v); err != nil {
		text := fmt.Sprint(v)
		if text == "" {
			text = `""`
		}
		return nil, fmt.Errorf("%s: want %s, not %.100s", s.Name, s.Takes(), text)
	}
	return parsed, nil
}

var errBad = errors.New("bad value")

func (s *Setting) read(v any) (any, error) {
	switch s.kind {
	case count, number, period:
		n, err := s.number(v)
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
		return s.interval(v)
	case choice:
		if i := slices.Index(s.words, fmt.Sprint(v)); i >= 0 {
			return i, nil
		}
		return nil, errBad
	case choices:
		return s.set(v)
	case until:
		return moment(v)
	case key:
		return keyOf(written(v))
	}
	name, ok := v.(string)
	if bare := strings.ReplaceAll(name, "{tube}", "x"); !ok || !wire.ValidTube([]byte(bare)) {
		return nil, errBad
	}
	return name, nil
}

// moment reads until when something holds.
func moment(v any) (int64, error) {
	switch v {
	case "no", false:
		return 0, nil
	case "yes", true:
		return math.MaxInt64, nil
	}
	at, is := v.(time.Time)
	if text, isText := v.(string); isText {
		var err error
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return 0, err
		}
		is = true
	}
	if !is || at.Year() < 1971 || at.Year() > 2200 {
		return 0, errBad
	}
	return at.UnixNano(), nil
}

// fromNow makes the moment of a duration when it is over, where something holds until then.
func (s *Setting) fromNow(text string, now time.Time) string {
	if d, err := duration.Parse(text); err == nil && s.kind == until && d > 0 {
		return now.Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	return text
}

// isOver reports whether a value is a moment that has passed.
func (s *Setting) isOver(v any, now time.Time) bool {
	return s.kind == until && v != int64(0) && v.(int64) <= now.UnixNano()
}

// number reads a number, or a duration in seconds.
func (s *Setting) number(v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil && s.kind == period {
			d, err := duration.Parse(v)
			return d.Seconds(), err
		}
		return n, err
	}
	return 0, errBad
}

// interval reads a rate.
func (s *Setting) interval(v any) (int64, error) {
	n, per := v, 1.0
	if text, is := v.(string); is {
		number, unit, has := strings.Cut(text, "/")
		if n = number; has {
			per = map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
		}
	}
	times, err := s.number(n)
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

// set reads a list of words, which as text has commas.
func (s *Setting) set(v any) (bits int, err error) {
	words, ok := v.([]any)
	if text, is := v.(string); is {
		ok = true
		for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			words = append(words, w)
		}
	}
	for _, w := range words {
		i := slices.Index(s.words, fmt.Sprint(w))
		if i < 0 {
			return 0, errBad
		}
		bits |= 1 << i
	}
	if !ok {
		return 0, errBad
	}
	return bits, nil
}
