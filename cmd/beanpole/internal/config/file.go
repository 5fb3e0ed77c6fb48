package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
)

// A configFile is what a configuration file says: TOML, with the long names of
// the options, and the tables.
type configFile struct {
	path   string
	values map[string]any // by name; the tables are there too
	tables Tables
}

// readConfigFile reads a configuration file. Each name must be one of known or of a
// table, and no two may contradict each other.
func readConfigFile(path string, known []string) (*configFile, error) {
	c := &configFile{path: path}
	text, err := os.ReadFile(path)
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
			return nil, command.UsageError("%s: there is no setting %q ('beanpole config print' shows all)", path, name)
		}
		if other := overrides[name]; c.says(name) && c.says(other) {
			return nil, command.UsageError("%s: %s and %s exclude each other", path, name, other)
		}
	}
	meta, err := toml.Decode(string(text), &c.tables)
	if err != nil {
		return nil, unreadable(path, err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && slices.Contains(tableNames, key[0]) {
			return nil, command.UsageError("%s: there is no setting %q in a [[%s]]", path, key[1], key[0])
		}
	}
	return c, nil
}

// unreadable says why a configuration file cannot be read.
func unreadable(path string, err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return command.UsageError("%s: line %d: %s", path, syntax.Position.Line, syntax.Message)
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return command.UsageError("%s: cannot read the configuration: %w", path, err)
}

// says tells whether the file has a setting that is not switched off.
func (c *configFile) says(name string) bool {
	v, ok := c.values[name]
	return ok && v != false
}

// lookup returns what the file says of a setting.
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
		return "", nil, command.UsageError("%s: %s takes one value, not a list", c.path, f.Name)
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
			return "", nil, command.UsageError("%s: %s: want a string, a whole number, true or false", c.path, f.Name)
		}
	}
	return source(c.path), values, nil
}
