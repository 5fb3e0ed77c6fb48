package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A setting of the server has one name, one way to read it and one place where
// its value is kept, whether it comes from the command line, the environment or
// a configuration file. It is a pflag.Value.
type setting struct {
	set   func(string) error
	value func() any // as TOML has it; nil: it says nothing now
	isSwitch
}

// isSwitch tells whether the setting may stand on the command line without a
// value; pflag asks by IsBoolFlag.
type isSwitch bool

func (b isSwitch) IsBoolFlag() bool { return bool(b) }

func (s *setting) Set(text string) error { return s.set(text) }
func (s *setting) Type() string          { return "setting" }

// String returns what Set would take to get the same value.
func (s *setting) String() string {
	if s.value == nil { // as pflag makes one to compare with
		return ""
	}
	return fmt.Sprint(s.value())
}

// as returns a setting that keeps in dst what parse makes of the text, and shows
// it as show does.
func as[T any](dst *T, parse func(string) (T, error), show func(T) any) *setting {
	return &setting{set: into(dst, parse), value: func() any { return show(*dst) }}
}

// onOff returns a switch.
func onOff(dst *bool) *setting {
	s := as(dst, parseSwitch, plainly)
	s.isSwitch = true
	return s
}

// plainly is for settings that are shown as they are kept.
func plainly[T any](v T) any { return v }

// define adds a setting to a set of flags. The usage may name the value between
// backquotes.
func define(fs *pflag.FlagSet, name, letter string, s *setting, usage string) {
	f := fs.VarPF(s, name, letter, usage)
	if s.isSwitch {
		f.NoOptDefVal = "true"
	}
}

// A commandLine is what the command line says: the settings that it sets, and the
// defaults of the others.
type commandLine struct {
	opt   serveOptions
	given []string // names
}

func newCommandLine(opt serveOptions, flags *pflag.FlagSet) commandLine {
	line := commandLine{opt: opt}
	flags.Visit(func(f *pflag.Flag) { line.given = append(line.given, f.Name) })
	return line
}

// Settings are the options of the server and where each comes from.
type settings struct {
	opt   *serveOptions
	flags *pflag.FlagSet    // whose values are those of opt
	from  map[string]source // by name; none: the default
}

// settings reads the environment and the configuration file, anew each time.
func (line commandLine) settings() (*settings, error) {
	opt := line.opt
	opt.listen, opt.guard.networks = slices.Clone(line.opt.listen), slices.Clone(line.opt.guard.networks)
	cmd := &cobra.Command{}
	opt.define(cmd)
	s := &settings{opt: &opt, flags: cmd.Flags(), from: make(map[string]source)}
	for _, name := range line.given {
		s.from[name] = byCommandLine
	}
	if err := s.take(fromEnvironment); err != nil {
		return nil, err
	}
	if opt.config == "" {
		return s, nil
	}
	file, err := readConfig(opt.config, settingNames(s.flags))
	if err != nil {
		return nil, err
	}
	if opt.tables, err = readTables(opt.config); err != nil {
		return nil, err
	}
	return s, s.take(file.lookup)
}

// take sets what a source says of the settings that no stronger source has set.
func (s *settings) take(lookup func(*pflag.Flag) (source, []string, error)) error {
	stronger := maps.Clone(s.from)
	var failed error
	s.flags.VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*setting); !ok || f.Hidden || failed != nil ||
			stronger[f.Name] != "" || stronger[overrides[f.Name]] != "" {
			return
		}
		from, values, err := lookup(f)
		if err != nil {
			failed = err
		}
		for _, v := range values {
			if err := f.Value.Set(v); err != nil {
				failed = usageError("bad value %q for %s in %s: %w", v, f.Name, from, err)
				return
			}
			s.from[f.Name] = from
		}
	})
	return failed
}

// A source says where the value of a setting comes from.
type source string

const (
	byDefault     source = "default"
	byCommandLine source = "command line"
)

// overrides are pairs of settings of which the one that comes from the stronger
// source wins.
var overrides = map[string]string{
	"fsync-interval": "no-fsync",
	"no-fsync":       "fsync-interval",
}

// fromEnvironment returns what the environment says of a flag. One that may be
// repeated takes several values with commas between them.
func fromEnvironment(f *pflag.Flag) (source, []string, error) {
	name := variable(f.Name)
	s, ok := os.LookupEnv(name)
	if !ok || setByOrchestrator(name, s) {
		return "", nil, nil
	}
	values := []string{s}
	if repeats(f) {
		values = strings.Split(s, ",")
	}
	return source("the environment variable " + name), values, nil
}

// variable returns the name of the environment variable for an option.
func variable(option string) string {
	return "BEANPOLE_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// setByOrchestrator tells whether a variable is not meant for us: Kubernetes,
// and Docker for links, set BEANPOLE_PORT=tcp://10.0.0.1:11300 in the
// containers that can reach a service which is called beanpole.
func setByOrchestrator(name, value string) bool {
	return name == "BEANPOLE_PORT" && strings.HasPrefix(value, "tcp://")
}

// repeatsKey is the annotation of a flag that may be repeated.
const repeatsKey = "repeats"

func repeats(f *pflag.Flag) bool {
	_, ok := f.Annotations[repeatsKey]
	return ok
}

// settingNames returns the names that a configuration file may have, in the order
// of the help.
func settingNames(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*setting); ok && !f.Hidden && f.Name != configFlag {
			names = append(names, f.Name)
		}
	})
	return names
}
