package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configFlag is the name of the option that names the configuration file.
const configFlag = "config"

// A configFile is what a configuration file says: TOML, with the long names of
// the options. Nil is no file.
type configFile struct {
	path   string
	values map[string]any
}

// readConfig reads a configuration file. Each name must be one of known, and no
// two may contradict each other.
func readConfig(path string, known []string) (*configFile, error) {
	c := &configFile{path: path}
	if _, err := toml.DecodeFile(path, &c.values); err != nil {
		return nil, configError(path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if slices.Contains(tableNames, name) {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, usageError("%s: there is no setting %q ('beanpole config print' shows all)", path, name)
		}
		if other := overrides[name]; c.says(name) && c.says(other) {
			return nil, usageError("%s: %s and %s exclude each other", path, name, other)
		}
	}
	return c, nil
}

func configError(path string, err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return usageError("%s: line %d: %s", path, syntax.Position.Line, syntax.Message)
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return usageError("%s: cannot read the configuration: %w", path, err)
}

// says tells whether the file has a setting that is not switched off.
func (c *configFile) says(name string) bool {
	v, ok := c.values[name]
	return ok && v != false
}

// lookup returns what the file says of a flag.
func (c *configFile) lookup(f *pflag.Flag) (source, []string, error) {
	if c == nil {
		return "", nil, nil
	}
	v, ok := c.values[f.Name]
	if !ok {
		return "", nil, nil
	}
	list, isList := v.([]any)
	switch {
	case !isList:
		list = []any{v}
	case !repeats(f):
		return "", nil, usageError("%s: %s takes one value, not a list", c.path, f.Name)
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
			return "", nil, usageError("%s: %s: want a string, a whole number, true or false", c.path, f.Name)
		}
	}
	return source(c.path), values, nil
}

const configLong = `Show how the server would be configured.

The options are those of serve. Each can also be set by an environment variable,
named after its long form (BEANPOLE_MAX_JOB_SIZE), or in a TOML file under its
long name (max-job-size = 100000), which --config or BEANPOLE_CONFIG names.
The command line wins over the environment, and that over the file.`

// newConfig is the command config.
func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "check or show the server's configuration",
		Long:  configLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownArgument(cmd, args)
			}
			return usageError("want a command: check or print (see: beanpole config --help)")
		},
	}
	cmd.AddCommand(
		newConfigCommand("check", "say whether the server would start with this configuration", checkConfig),
		newConfigCommand("print", "show each setting and where it comes from, as a configuration file", printConfig),
	)
	return cmd
}

func newConfigCommand(name, short string, run func(io.Writer, *settings) error) *cobra.Command {
	opt := defaultOptions()
	cmd := &cobra.Command{
		Use:                   name + " [options of serve]",
		Short:                 short,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := newCommandLine(opt, cmd.Flags()).settings()
			if err != nil {
				return err
			}
			return run(cmd.OutOrStdout(), s)
		},
	}
	opt.define(cmd)
	return cmd
}

// checkConfig looks for what is wrong as far as it can be known without opening
// sockets or files.
func checkConfig(w io.Writer, s *settings) error {
	endpoints, err := s.opt.endpoints()
	if err != nil {
		return usageError("%w", err)
	}
	if _, err := s.opt.limits(); err != nil {
		return usageError("%w", err)
	}
	if _, err := newSecurity(s.opt, endpoints, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if _, err := lookupIdentity(s.opt.user); err != nil {
		return err
	}
	if dir := s.opt.journal.dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return &exitError{exitJournal, fmt.Errorf("journal: %s is not a directory (it must exist)", dir)}
		}
	}
	fmt.Fprintln(w, "the configuration is good")
	return nil
}

// printConfig prints the settings as a configuration file that has the same
// effect.
func printConfig(w io.Writer, s *settings) error {
	type row struct{ setting, from string }
	var rows []row
	width := 0
	for _, name := range settingNames(s.flags) {
		v := s.flags.Lookup(name).Value.(*setting).value()
		if v == nil {
			continue
		}
		text, err := toml.Marshal(map[string]any{name: v})
		if err != nil {
			return err
		}
		from := s.from[name]
		if from == "" {
			from = byDefault
		}
		r := row{strings.TrimSpace(string(text)), string(from)}
		rows, width = append(rows, r), max(width, len(r.setting))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%-*s  # %s\n", width, r.setting, r.from); err != nil {
			return err
		}
	}
	return printTables(w, s.opt.tables)
}

// printTables prints the tables, without the hashes of tokens.
func printTables(w io.Writer, t tables) error {
	for i := range t.Identities {
		for j := range t.Identities[i].Tokens {
			t.Identities[i].Tokens[j] = "sha256:..."
		}
	}
	text, err := toml.Marshal(t)
	if err != nil || len(text) == 0 {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s", text)
	return err
}
