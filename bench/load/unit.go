package load

import (
	"fmt"
	"math"
)

// FormatTime formats nanoseconds for display.
func FormatTime(ns float64) string {
	switch {
	case ns >= 1e9:
		return ThreeDigits(ns/1e9) + " s"
	case ns >= 1e6:
		return ThreeDigits(ns/1e6) + " ms"
	}
	return ThreeDigits(ns/1e3) + " us"
}

// ThreeDigits formats a non-negative value with three digits and at most two decimals.
func ThreeDigits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Count formats a number with commas, such as 1,234,568 for 1234567.8.
func Count[T int | int64 | float64](n T) string {
	s := fmt.Sprintf("%.0f", math.Round(float64(n)))
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a number with a noun, such as 1 job or 1,000 jobs.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
