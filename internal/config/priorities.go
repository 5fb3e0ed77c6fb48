package config

import (
	"io"
	"regexp"
)

// A prioritizer writes the priority of a line before it, as sd-daemon(3) says, by the level that the line says.
type prioritizer struct{ io.Writer }

// levelOf finds the level of a line, which stands first in text without times, and after the time in JSON.
var levelOf = regexp.MustCompile(`^(?:level=|\{"time":"[^"]*","level":")([A-Z]+)`)

var priorities = map[string]string{"DEBUG": "<7>", "INFO": "<6>", "WARN": "<4>", "ERROR": "<3>"}

// Write implements io.Writer. It is given a line.
func (p prioritizer) Write(line []byte) (int, error) {
	prefix := ""
	if m := levelOf.FindSubmatch(line); m != nil {
		prefix = priorities[string(m[1])]
	}
	n, err := p.Writer.Write(append([]byte(prefix), line...))
	return max(n-len(prefix), 0), err
}
