package load

import (
	"strconv"
	"strings"
	"time"
)

// A numbering creates distinct bodies: each contains the number of its job. The sessions
// of a run share it. Numbers start with the current time in microseconds, so that they
// differ from the numbers of earlier runs, whose jobs can still be in the tube.
type numbering struct {
	at   int // offset of the number in a body
	last int64
}

const digits = 16 // enough for microseconds since 1970 until 2286

// newNumbering returns the body described by Options.Body.
func newNumbering(template string) (body []byte, n *numbering) {
	before, after, _ := strings.Cut(template, "%")
	return []byte(before + strings.Repeat("0", digits) + after), &numbering{len(before), time.Now().UnixMicro()}
}

// stamp writes the next number into a body.
func (n *numbering) stamp(body []byte) {
	n.last++
	strconv.AppendInt(body[:n.at], n.last, 10)
}
