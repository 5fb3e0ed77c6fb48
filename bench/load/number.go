package load

import (
	"strconv"
	"strings"
	"time"
)

// A numbering makes bodies of which no two are equal: each has the number of its job in one
// place. The sessions of a run share it. The numbers begin with the microseconds of the
// clock, so that those of another run, which may be in the tube, are others.
type numbering struct {
	at   int // of the number in a body
	last int64
}

const digits = 16 // of the microseconds since 1970, until 2286

// newNumbering returns the body that Options.Body describes.
func newNumbering(template string) (body []byte, n *numbering) {
	before, after, _ := strings.Cut(template, "%")
	return []byte(before + strings.Repeat("0", digits) + after), &numbering{len(before), time.Now().UnixMicro()}
}

// stamp writes the next number into a body.
func (n *numbering) stamp(body []byte) {
	n.last++
	strconv.AppendInt(body[:n.at], n.last, 10)
}
