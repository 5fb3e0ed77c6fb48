package load

import (
	"strings"
	"time"
)

// A numbering makes bodies of which no two are equal: each has the number of its job at some
// places. The sessions of a run share it. The numbers begin with the microseconds of the
// clock, so that those of another run, which may be in the tube, are others.
type numbering struct {
	places []int
	last   int64
}

const digits = 12 // of a number

// newNumbering returns the body that Options.Body describes.
func newNumbering(template string) (body []byte, n *numbering) {
	n = &numbering{last: time.Now().UnixMicro()}
	for i, text := range strings.Split(template, "%") {
		if i > 0 {
			n.places = append(n.places, len(body))
			body = append(body, make([]byte, digits)...)
		}
		body = append(body, text...)
	}
	return body, n
}

// stamp writes the next number into a body.
func (n *numbering) stamp(body []byte) {
	n.last++
	var text [digits]byte
	for i, left := digits-1, n.last; i >= 0; i-- {
		text[i], left = '0'+byte(left%10), left/10
	}
	n.write(body, text[:])
}

func (n *numbering) write(body, number []byte) {
	for _, at := range n.places {
		copy(body[at:at+digits], number)
	}
}
