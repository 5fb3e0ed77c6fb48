package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// A configFile is a parsed configuration file: TOML with the long names of the options,
// and the tables.
type configFile struct {
	path   string
	values map[string]any // all values, including tables, by name
	tables Tables
}

// readConfigFile reads a configuration file. Each name must be in known or belong to a
// table, and no two names must contradict each other.
func readConfigFile(path string, known []string) (*configFile, error) {
	c := &configFile{path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if err := toml.Unmarshal(text, &c.values); err != nil {
		return nil, unreadable(path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if slices.Contains(tableNames, name) {
			if _, ok := c.values[name].([]map[string]any); !ok {
				return nil, exit.UsageError("%s: %s is a list of tables: want [[%[2]s]]", path, name)
			}
			continue
		}
		if !slices.Contains(known, name) {
			return nil, exit.UsageError("%s: unknown setting %q%s", path, name, suggest(known, name))
		}
		if other := overrides[name]; c.isSet(name) && c.isSet(other) {
			return nil, exit.UsageError("%s: %s and %s cannot be used together", path, name, other)
		}
	}
	meta, err := toml.Decode(string(text), &c.tables)
	if err != nil {
		return nil, unreadable(path, err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && slices.Contains(tableNames, key[0]) {
			return nil, exit.UsageError("%s: unknown setting %q in [[%s]]", path, key[1], key[0])
		}
	}
	return c, nil
}

// suggest returns the end of an error about an unknown setting: the name that was
// probably meant.
func suggest(names []string, wrong string) string {
	if near := flags.Nearest(names, wrong); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return " ('beanpole config print' shows all)"
}

// unreadable returns the error for a configuration file that cannot be read.
func unreadable(path string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return exit.UsageError("%s: cannot read the configuration: %w", path, err)
}

// isSet reports whether the file contains a setting and does not turn it off.
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
		return "", nil, exit.UsageError("%s: %s must be one value, not a list", c.path, f.Name)
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
			return "", nil, exit.UsageError("%s: %s: want a string, a whole number, true or false", c.path, f.Name)
		}
	}
	return source(c.path), values, nil
}
