package config

import (
	"io"
	"regexp"
)

// A prioritizer prefixes each line with the priority for its level, as sd-daemon(3)
// describes.
type prioritizer struct{ io.Writer }

// levelOf matches the level of a line, after its time.
var levelOf = regexp.MustCompile(`^(?:time=\S+ level=|\{"time":"[^"]*","level":")([A-Z]+)`)

var priorities = map[string]string{"DEBUG": "<7>", "INFO": "<6>", "WARN": "<4>", "ERROR": "<3>"}

// Write implements io.Writer for a single line.
func (p prioritizer) Write(line []byte) (int, error) {
	prefix := ""
	if m := levelOf.FindSubmatch(line); m != nil {
		prefix = priorities[string(m[1])]
	}
	n, err := p.Writer.Write(append([]byte(prefix), line...))
	return max(n-len(prefix), 0), err
}
