package config

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
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

// setByOrchestrator tells whether a variable is not meant for us: Kubernetes,
// and Docker for links, set BEANPOLE_PORT=tcp://10.0.0.1:11300 in the
// containers that can reach a service which is called beanpole.
func setByOrchestrator(name, value string) bool {
	return name == "BEANPOLE_PORT" && strings.HasPrefix(value, "tcp://")
}
