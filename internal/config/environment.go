package config

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// fromEnvironment returns the values of a setting in the environment. A repeatable
// setting accepts several values, separated by commas.
func fromEnvironment(f *pflag.Flag, s *setting) (source, []string, error) {
	name := variable(f.Name)
	text, ok := os.LookupEnv(name)
	if !ok || f.Name == "port" && setByOrchestrator(text) {
		return "", nil, nil
	}
	values := []string{text}
	if s.repeats {
		values = strings.Split(text, ",")
	}
	return source("the environment variable " + name), values, nil
}

// variable returns the name of an option's environment variable.
func variable(option string) string {
	return "BEANPOLE_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// otherVariables contains the variables that client commands read, or that Docker sets
// for a link named beanpole.
var otherVariables = []string{"BEANPOLE_ADDR", "BEANPOLE_ADMIN_ADDR", "BEANPOLE_TOKEN", "BEANPOLE_NAME"}

// checkVariables returns an error if a variable looks like a misspelled option.
// Otherwise, a limit or an access rule would be silently ignored.
func checkVariables(options []string) error {
	var known []string
	for _, option := range options {
		known = append(known, variable(option))
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "BEANPOLE_") || slices.Contains(known, name) || slices.Contains(otherVariables, name) || setByOrchestrator(value) {
			continue
		}
		if near := flags.Nearest(known, name); near != "" {
			return exit.UsageError("unknown environment variable %s; did you mean %s?", name, near)
		}
	}
	return nil
}

// setByOrchestrator reports whether a variable with this value was set by Kubernetes or
// Docker. For a service named beanpole, they set, for example,
// BEANPOLE_PORT=tcp://10.0.0.1:11300.
func setByOrchestrator(value string) bool { return strings.HasPrefix(value, "tcp://") }
