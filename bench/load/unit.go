package load

import (
	"fmt"
	"math"
)

// A Unit says what a value counts.
type Unit string

const (
	Bytes       Unit = "bytes"
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Times       Unit = "times" // a quotient: the ratio of two says nothing
)

// Format prints a value for people.
func (u Unit) Format(v float64) string {
	switch u {
	case Bytes:
		switch size := math.Abs(v); {
		case size < 1<<10:
			return fmt.Sprintf("%.0f bytes", v)
		case size < 64<<10:
			return fmt.Sprintf("%.1f KiB", v/(1<<10))
		}
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case Nanoseconds:
		switch {
		case v >= 1e9:
			return ThreeDigits(v/1e9) + " s"
		case v >= 1e6:
			return ThreeDigits(v/1e6) + " ms"
		}
		return ThreeDigits(v/1e3) + " us"
	case Times:
		return Factor(v) + " times"
	}
	return Count(v) + "/s"
}

// ThreeDigits prints a value that is not negative with three digits, and two places after the point at most.
func ThreeDigits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Factor prints a ratio with two or three digits that say something.
func Factor(f float64) string {
	switch {
	case f < 0.1:
		return fmt.Sprintf("%.3f", f)
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// Count prints 1234567.8 as 1,234,568.
func Count[T int | int64 | float64](n T) string {
	s := fmt.Sprintf("%.0f", math.Round(float64(n)))
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural prints a number of things: 1 job, 1,000 jobs.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
