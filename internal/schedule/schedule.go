// Package schedule parses the definitions of schedules and computes when they run. The
// engine puts their jobs.
//
//	s, err := schedule.Compile("nightly", map[string]string{"cron": "30 3 * * *", "tube": "reports"})
//	next := s.Next(time.Now().Unix())
//
// A definition consists of settings (the table Settings). The journal stores it as text:
// lines such as cron="30 3 * * *", sorted by name.
//
// The times of a cron expression are local times in a time zone. A run at a local time
// that does not exist takes place at the next valid time; a run at a local time that
// occurs twice takes place once, at its first occurrence. Start reading at cron.go.
package schedule

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // not every machine has the files
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Setting describes a setting of a schedule.
type Setting struct {
	Name    string
	Default string
	Doc     string
	Words   []string // all accepted values, or nil
}

// Settings contains all settings.
var Settings = []Setting{
	{"cron", "", "Times of the runs: minute, hour, day of month, month and day of week, or a name such as `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.", nil},
	{"every", "", "Time between runs, instead of `cron`: 1s to 366d. It counts elapsed time.", nil},
	{"timezone", "UTC", "Time zone of `cron`, such as `Europe/Berlin`.", nil},
	{"tube", "", "Tube of the jobs.", nil},
	{"body", "", "Body of the jobs, at most 16 KiB. `{time}` is replaced by the time of the run, `{name}` by the name of the schedule.", nil},
	{"priority", "1024", "Priority of the jobs.", nil},
	{"delay", "0s", "Delay of the jobs.", nil},
	{"ttr", "1m", "TTR of the jobs, at least 1s.", nil},
	{"missed", "once", "Runs after downtime: one for all missed runs; none; or all of the last day, at most 100.", []string{"once", "skip", "all"}},
	{"overlap", "put", "Action if the previous job is still ready, delayed or reserved: put the next job, or skip the run.", []string{"put", "skip"}},
}

// Names returns the names of all settings.
func Names() []string {
	names := make([]string, len(Settings))
	for i := range Settings {
		names[i] = Settings[i].Name
	}
	return names
}

const (
	maxName  = 100      // bytes
	maxBody  = 16 << 10 // bytes
	maxEvery = 366 * 24 * time.Hour

	never = engine.NeverRuns
)

// CheckName returns an error unless name is a valid name for a schedule.
func CheckName(name string) error {
	if len(name) > maxName || !wire.ValidTube([]byte(name)) {
		return fmt.Errorf("invalid name %.110q of a schedule; want 1 to %d letters, digits or any of -+/;.$_(), and no - first", name, maxName)
	}
	return nil
}

// Parse returns the settings of a stored text.
func Parse(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[name], _ = strconv.Unquote(value)
	}
	return all
}

// Text returns the stored text of settings.
func Text(settings map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] != "" {
			fmt.Fprintf(&b, "%s=%q\n", name, settings[name])
		}
	}
	return b.String()
}

// Compile returns the schedule for a definition. Its error joins the errors of all
// settings.
func Compile(name string, settings map[string]string) (*engine.Schedule, error) {
	c := compiler{settings: settings}
	s := &engine.Schedule{Tube: settings["tube"]}
	c.try("", CheckName(name))
	for _, given := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(Names(), given) {
			c.try(given, fmt.Errorf("unknown setting; want %s", strings.Join(Names(), ", ")))
		}
	}
	if !wire.ValidTube([]byte(s.Tube)) {
		c.try("tube", fmt.Errorf("want the name of a tube, not %.210q", s.Tube))
	}
	c.timing(s)
	s.Spec = engine.Spec{Pri: c.number("priority"), Delay: c.seconds("delay"), TTR: c.seconds("ttr")}
	s.Missed, s.SkipOverlap = engine.Missed(c.word("missed")), c.word("overlap") == 1
	body := settings["body"]
	if len(body) > maxBody || !utf8.ValidString(body) {
		c.try("body", fmt.Errorf("want UTF-8 text of at most %d bytes", maxBody))
	}
	zone := c.zone
	s.Body = func(moment int64) []byte {
		at := time.Unix(moment, 0).In(zone).Format(time.RFC3339)
		return []byte(strings.NewReplacer("{time}", at, "{name}", name).Replace(body))
	}
	return s, errors.Join(c.wrong...)
}

// CompileText is Compile for a stored text, in the form that [engine.Options] requires.
// It returns nil if this version cannot read the text.
func CompileText(name, text string) *engine.Schedule {
	s, err := Compile(name, Parse(text))
	if err != nil {
		return nil
	}
	return s
}

// Upcoming returns the next five runs after a time, in seconds since 1970.
func Upcoming(s *engine.Schedule, after int64) []int64 {
	runs := make([]int64, 5)
	for i := range runs {
		after = s.Next(after)
		runs[i] = after
	}
	return runs
}

// A compiler collects the errors of settings.
type compiler struct {
	settings map[string]string
	wrong    []error
	zone     *time.Location
}

func (c *compiler) try(setting string, err error) {
	if err != nil && setting != "" {
		err = fmt.Errorf("%s: %w", setting, err)
	}
	c.wrong = append(c.wrong, err)
}

// value returns the value of a setting, or its default, with the setting.
func (c *compiler) value(name string) (string, *Setting) {
	s := &Settings[slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })]
	return cmp.Or(c.settings[name], s.Default), s
}

func (c *compiler) number(name string) uint32 {
	text, _ := c.value(name)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		c.try(name, fmt.Errorf("want a number from 0 to %d, not %.30q", uint32(math.MaxUint32), text))
	}
	return uint32(n)
}

func (c *compiler) seconds(name string) uint32 {
	text, _ := c.value(name)
	d, err := duration.Parse(text)
	if err == nil && (d > math.MaxUint32*time.Second || d%time.Second != 0) {
		err = errors.New("want whole seconds, at most 49710d")
	}
	c.try(name, err)
	return uint32(d / time.Second)
}

func (c *compiler) word(name string) int {
	text, s := c.value(name)
	i := slices.Index(s.Words, text)
	if i < 0 {
		c.try(name, fmt.Errorf("want %s, not %.30q", strings.Join(s.Words, " or "), text))
	}
	return i
}

// timing sets the times of the runs.
func (c *compiler) timing(s *engine.Schedule) {
	name, _ := c.value("timezone")
	var err error
	c.zone, err = ZoneOf(name)
	c.try("timezone", err)
	expression, every := c.settings["cron"], c.settings["every"]
	switch {
	case (expression == "") == (every == ""):
		c.try("cron", errors.New("want one of cron and every"))
	case every != "":
		period, err := duration.Parse(every)
		if err == nil && (period < time.Second || period > maxEvery || period%time.Second != 0) {
			err = errors.New("want whole seconds, from 1s to 366d")
		}
		c.try("every", err)
		s.Timing = "every " + every
		p := max(int64(period/time.Second), 1)
		s.Next = func(after int64) int64 { return after + p }
		s.Due = func(after, upto int64, most int) (all []int64) {
			for at := after + (upto-after)/p*p; at > after && len(all) < most; at -= p {
				all = append(all, at)
			}
			return all
		}
	case err == nil:
		parsed, err := parseCron(expression, c.zone)
		c.try("cron", err)
		s.Timing = expression + " " + name
		if err == nil {
			s.Next, s.Due = parsed.next, parsed.due
		}
	}
}

//go:embed zones.txt
var zoneNames string // sorted; a test compares them with Go's

var zoneList = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

var zones sync.Map // loaded zones, by name

// ZoneOf returns the time zone of a schedule. It is UTC for an unknown name.
func ZoneOf(name string) (*time.Location, error) {
	name = cmp.Or(name, "UTC")
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if _, known := slices.BinarySearch(zoneList(), name); !known {
		nearest := slices.MaxFunc(zoneList(), func(a, b string) int { return cmp.Compare(likeness(name, a), likeness(name, b)) })
		return time.UTC, fmt.Errorf("unknown time zone %.40q; did you mean %q?", name, nearest)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC, err
	}
	zones.Store(name, zone)
	return zone, nil
}

// likeness returns the number of bytes that two names have in common at their start and
// end, ignoring case.
func likeness(a, b string) (n int) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" && a[0] == b[0] {
		a, b, n = a[1:], b[1:], n+1
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b, n = a[:len(a)-1], b[:len(b)-1], n+1
	}
	return n
}
