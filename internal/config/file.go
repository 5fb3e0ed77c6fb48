package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// A configFile is a parsed configuration file: TOML with the long names of the options,
// and the tables.
type configFile struct {
	path   string
	text   string
	values map[string]any // all values, including tables, by name
	tables Tables
}

// readConfigFile reads a configuration file. Each name must be in known or belong to a
// table, and no two names can contradict each other.
func readConfigFile(path string, known []string) (*configFile, error) {
	c := &configFile{path: path}
	text, err := os.ReadFile(path)
	c.text = string(text)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if _, err := toml.Decode(string(text), &c.values); err != nil {
		return nil, unreadable(path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if slices.Contains(tableNames, name) {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, exit.UsageError("%s: unknown setting %q%s", c.position("", name), name, suggest(known, name))
		}
		if other := overrides[name]; c.isSet(name) && c.isSet(other) {
			return nil, exit.UsageError("%s: %s and %s exclude each other", path, name, other)
		}
	}
	meta, err := toml.Decode(string(text), &c.tables)
	if err != nil {
		return nil, unreadable(path, err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && slices.Contains(tableNames, key[0]) {
			return nil, c.unknown(key[0], key[1])
		}
	}
	for _, table := range []string{policyName, scheduleName} { // whose settings are in a map
		list, _ := c.values[table].([]map[string]any)
		for _, t := range list {
			for _, name := range slices.Sorted(maps.Keys(t)) {
				if !slices.Contains(settingsOf(table), name) {
					return nil, c.unknown(table, name)
				}
			}
		}
	}
	return c, nil
}

// unknown returns an error about an unknown setting in a table.
func (c *configFile) unknown(table, name string) error {
	return exit.UsageError("%s: unknown setting %q in [[%s]]%s", c.position(table, name), name, table, suggest(settingsOf(table), name))
}

// suggest returns the end of an error about an unknown setting, with the likely name.
func suggest(names []string, wrong string) string {
	if near := flags.Nearest(names, wrong); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return " ('beanpole config print' shows all)"
}

// position describes the place of a setting in a table, or at the top of the file if
// table is empty.
func (c *configFile) position(table, name string) string {
	key := regexp.MustCompile(`^\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*=`)
	header := regexp.MustCompile(`^\s*\[+\s*([^]\s]+)`)
	in, n := "", 0
	for line := range strings.Lines(c.text) {
		n++
		if m := header.FindStringSubmatch(line); m != nil {
			in = m[1]
		}
		if in == table && key.MatchString(line) {
			return fmt.Sprintf("%s, line %d", c.path, n)
		}
	}
	return c.path // a [table] of that name, for instance
}

// wrongType matches the library's error about a value of the wrong type: line, key, type,
// wanted Go type.
var wrongType = regexp.MustCompile(`^toml: line (\d+) \(last key "(.+)"\): incompatible types: TOML value has type (.+); destination has type (.+)$`)

var typeNames = map[string]string{
	"string": "a string", "slice": "a list", "[]any": "a list", "map[string]any": "a table", "[]map[string]any": "a list of tables", "bool": "true or false", "boolean": "true or false",
	"integer": "a whole number", "int64": "a whole number", "float64": "a number with a fraction", "time.Time": "a date",
}

// unreadable returns an error that explains why a configuration file cannot be read.
func unreadable(path string, err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return exit.UsageError("%s, line %d: %s", path, syntax.Position.Line, syntax.Message)
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		want := typeNames[m[4]]
		if slices.Contains(tableNames, m[2]) {
			want = "[[" + m[2] + "]]"
		}
		return exit.UsageError("%s, line %s: %s: want %s, not %s", path, m[1], m[2], want, typeNames[m[3]])
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return exit.UsageError("%s: cannot read the configuration: %w", path, err)
}

// isSet reports whether the file contains a setting that is not turned off.
func (c *configFile) isSet(name string) bool {
	v, ok := c.values[name]
	return ok && v != false
}

// lookup returns the values of a setting in the file.
func (c *configFile) lookup(f *pflag.Flag, s *setting) (source, []string, error) {
	v, ok := c.values[f.Name]
	if !ok {
		return "", nil, nil
	}
	list, isList := v.([]any)
	switch {
	case !isList:
		list = []any{v}
	case !s.repeats:
		return "", nil, exit.UsageError("%s: %s must be one value, not a list", c.position("", f.Name), f.Name)
	}
	var values []string
	for _, v := range list {
		switch v := v.(type) {
		case string:
			values = append(values, v)
		case int64:
			values = append(values, strconv.FormatInt(v, 10))
		case bool:
			values = append(values, strconv.FormatBool(v))
		default:
			return "", nil, exit.UsageError("%s: %s: want a string, a whole number, true or false", c.position("", f.Name), f.Name)
		}
	}
	return source(c.position("", f.Name)), values, nil
}
