package wire

import (
	"fmt"
	"math"
)

// Compat is the version of beanstalkd to imitate. The versions differ in the quotes of
// statistics and in the argument of reserve-with-timeout.
type Compat uint8

const (
	Compat113 Compat = iota // 1.13: strings have quotes; the timeout is a number up to MaxTimeout
	Compat112               // 1.12: only version has quotes; the timeout is parsed like C: text is 0, negative numbers mean no limit
)

// ParseCompat parses a version such as "1.13".
func ParseCompat(version string) (Compat, error) {
	for _, c := range []Compat{Compat113, Compat112} {
		if c.String() == version {
			return c, nil
		}
	}
	return 0, fmt.Errorf("want %v or %v", Compat112, Compat113)
}

// String returns the version, as stats shows it.
func (c Compat) String() string {
	if c == Compat112 {
		return "1.12"
	}
	return "1.13"
}

// looseTimeout parses the argument of reserve-with-timeout as 1.12 does, with C's strtol
// into a 32-bit int: text is 0. A negative number becomes Forever.
func looseTimeout(line []byte, i int) (timeout uint32, end int) {
	v, end := strtol(line, i)
	if end < 0 {
		return 0, end
	}
	if int32(v) < 0 {
		return Forever, end
	}
	return uint32(int32(v)), end
}

// Forever is a Command.Timeout without a limit.
const Forever = math.MaxUint32
