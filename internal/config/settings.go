package config

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A setting has one name, parser and variable for the command line, the environment and
// the configuration file. It is a pflag.Value.
type setting struct {
	set   func(string) error
	value func() any // returns the TOML value, or nil if there is none

	repeats  bool // whether each value is added to the previous ones
	isSwitch bool // whether it can be given without a value on the command line
}

func (s *setting) Set(text string) error { return s.set(text) }
func (s *setting) Type() string          { return "setting" }

// String returns a text from which Set parses the same value, or "".
func (s *setting) String() string {
	if s.value == nil { // pflag creates an empty value for comparisons
		return ""
	}
	if v := s.value(); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// as returns a setting that stores the result of parse in *dst.
func as[T any](dst *T, parse func(string) (T, error)) *setting {
	return &setting{set: flags.Into(dst, parse), value: func() any { return show(*dst) }}
}

// show returns a value for TOML, or nil for an empty text.
func show(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil
		}
	case time.Duration:
		return duration.Format(v)
	case fs.FileMode:
		return fmt.Sprintf("%#o", v)
	case wire.Compat:
		return v.String()
	}
	return value
}

// listOf returns a setting that appends the result of parse to *list.
func listOf[T any](list *[]T, parse func(string) (T, error)) *setting {
	set := func(s string) error {
		v, err := parse(s)
		*list = append(*list, v)
		return err
	}
	show := func() any {
		if len(*list) == 0 {
			return nil
		}
		var texts []string
		for _, v := range *list {
			texts = append(texts, fmt.Sprint(v))
		}
		return texts
	}
	return &setting{set: set, value: show, repeats: true}
}

// onOff returns a boolean setting.
func onOff(dst *bool) *setting {
	s := as(dst, parseSwitch)
	s.isSwitch = true
	return s
}

// define adds a setting to a set of flags. The usage can name the value in backquotes.
func define(fs *pflag.FlagSet, name, letter string, s *setting, usage string) {
	f := fs.VarPF(s, name, letter, usage)
	if s.isSwitch {
		f.NoOptDefVal = "true"
	}
}

// A CommandLine contains the settings on the command line, and the defaults of the
// others.
type CommandLine struct {
	opt   Options
	given []string // names of the given options
}

// NewCommandLine returns the settings of parsed flags, which opt must have defined.
func NewCommandLine(opt Options, flags *pflag.FlagSet) CommandLine {
	line := CommandLine{opt: opt}
	flags.Visit(func(f *pflag.Flag) { line.given = append(line.given, f.Name) })
	return line
}

// Settings contains the options of the server and the source of each.
type Settings struct {
	Options *Options
	flags   *pflag.FlagSet    // flags whose values are in Options
	from    map[string]source // by name; defaults have no source
}

// Read adds the settings in the environment and in the configuration file, which it reads
// at each call.
func (line CommandLine) Read() (*Settings, error) {
	opt := line.opt
	opt.Listen, opt.Terms.Networks, opt.Terms.Proxies = slices.Clone(line.opt.Listen), slices.Clone(line.opt.Terms.Networks), slices.Clone(line.opt.Terms.Proxies)
	s := &Settings{Options: &opt, flags: pflag.NewFlagSet("", pflag.ContinueOnError), from: make(map[string]source)}
	opt.Define(s.flags)
	for _, name := range line.given {
		s.from[name] = byCommandLine
	}
	if err := s.add(fromEnvironment); err != nil {
		return nil, err
	}
	if err := checkVariables(append(s.Names(), fileFlag)); err != nil {
		return nil, err
	}
	if opt.File == "" {
		return s, nil
	}
	file, err := readConfigFile(opt.File, s.Names())
	if err != nil {
		return nil, err
	}
	opt.Tables = file.tables
	return s, s.add(file.lookup)
}

// add applies the values of a source to the settings that no stronger source has set.
func (s *Settings) add(lookup func(*pflag.Flag, *setting) (source, []string, error)) error {
	stronger := maps.Clone(s.from)
	for f, setting := range s.all {
		from, values, err := lookup(f, setting)
		if stronger[f.Name] != "" || stronger[overrides[f.Name]] != "" {
			continue
		}
		if err != nil {
			return err
		}
		for _, v := range values {
			if err := setting.Set(v); err != nil {
				return exit.UsageError("bad value %q for %s in %s: %w", v, f.Name, from, err)
			}
			s.from[f.Name] = from
		}
	}
	return nil
}

// all yields the settings in the order of the help.
func (s *Settings) all(yield func(*pflag.Flag, *setting) bool) {
	more := true
	s.flags.VisitAll(func(f *pflag.Flag) {
		if setting, ok := f.Value.(*setting); ok && more {
			more = yield(f, setting)
		}
	})
}

// Names returns the names that settings have in a configuration file, in the order of the
// help.
func (s *Settings) Names() []string {
	var names []string
	for f := range s.all {
		if f.Name != fileFlag {
			names = append(names, f.Name)
		}
	}
	return names
}

// Changed returns the names of the settings whose values in s and other differ.
func (s *Settings) Changed(other *Settings) []string {
	return slices.DeleteFunc(s.Names(), func(name string) bool {
		return s.flags.Lookup(name).Value.String() == other.flags.Lookup(name).Value.String()
	})
}

// fileFlag is the option with the path of the configuration file.
const fileFlag = "config"

// A source describes the origin of a setting's value.
type source string

const (
	byDefault     source = "default"
	byCommandLine source = "command line"
)

// overrides maps a setting to a setting that it excludes. The setting from the stronger
// source counts.
var overrides = map[string]string{
	"fsync-interval": "no-fsync",
	"no-fsync":       "fsync-interval",
}
