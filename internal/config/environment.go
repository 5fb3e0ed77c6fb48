package config

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// fromEnvironment returns what the environment says of a setting. One that may be
// repeated takes several values with commas between them.
func fromEnvironment(f *pflag.Flag, s *setting) (source, []string, error) {
	name := variable(f.Name)
	text, ok := os.LookupEnv(name)
	if !ok || setByOrchestrator(name, text) {
		return "", nil, nil
	}
	values := []string{text}
	if s.repeats {
		values = strings.Split(text, ",")
	}
	return source("the environment variable " + name), values, nil
}

// variable returns the name of the environment variable for an option.
func variable(option string) string {
	return "BEANPOLE_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// otherVariables are those that commands for the queue read, and what Docker sets for a
// link that is called beanpole.
var otherVariables = []string{"BEANPOLE_ADDR", "BEANPOLE_TOKEN", "BEANPOLE_TO_TOKEN", "BEANPOLE_NAME"}

// ofService matches the variables that Kubernetes sets in a container for each service
// whose name begins with beanpole.
var ofService = regexp.MustCompile(`^BEANPOLE_(.+_)?(SERVICE_(HOST|PORT(_.*)?)|PORT(_[0-9]+_(TCP|UDP)(_.*)?)?)$`)

// strangeVariables returns the variables that look like ours and mean nothing. It fails
// if one is nearly that of an option: a limit, or what is asked of clients, would be
// missing.
func strangeVariables(options []string) (strange []string, err error) {
	var known []string
	for _, option := range options {
		known = append(known, variable(option))
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "BEANPOLE_") || slices.Contains(known, name) || slices.Contains(otherVariables, name) ||
			setByOrchestrator(name, value) || ofService.MatchString(name) {
			continue
		}
		for setting, instead := range Removed {
			if name == variable(setting) {
				return nil, kit.UsageError("unknown environment variable %s; %s", name, instead)
			}
		}
		if near := kit.Nearest(known, name); near != "" {
			return nil, kit.UsageError("unknown environment variable %s; did you mean %s?", name, near)
		}
		strange = append(strange, name)
	}
	return strange, nil
}

// setByOrchestrator tells whether a variable is not meant for us: Kubernetes,
// and Docker for links, set BEANPOLE_PORT=tcp://10.0.0.1:11300 in the
// containers that can reach a service which is called beanpole.
func setByOrchestrator(name, value string) bool {
	return name == "BEANPOLE_PORT" && strings.HasPrefix(value, "tcp://")
}
