// Package duration parses durations as written on command lines, in the configuration
// file and in policies.
package duration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var errUnit = errors.New("want a time with its unit, such as 30s, 10m, 1h30m or 7d")

// Parse parses a non-negative duration. In addition to the units of [time.ParseDuration],
// it accepts days, as in 7d or 1d12h. The error for a number without a unit suggests
// seconds, the unit of the protocol.
func Parse(s string) (time.Duration, error) {
	var days uint64
	rest := s
	if before, after, has := strings.Cut(s, "d"); has {
		var err error
		if days, err = strconv.ParseUint(before, 10, 16); err != nil || strings.HasPrefix(after, "-") {
			return 0, errUnit
		}
		rest = cmp.Or(after, "0")
	}
	d, err := time.ParseDuration(rest)
	switch {
	case err != nil && s != "" && strings.Trim(s, "0123456789") == "":
		return 0, fmt.Errorf("want a time with its unit: %ss is seconds, %[1]sm minutes, %[1]sh hours, %[1]sd days", s)
	case err != nil:
		return 0, errUnit
	case d < 0:
		return 0, errors.New("it must not be negative")
	case d > math.MaxInt64-time.Duration(days)*day:
		return 0, errors.New("it is too long: want at most 292 years")
	}
	return time.Duration(days)*day + d, nil
}

// Until returns the time from now to a time of day in UTC, such as 09:00. The result is
// at most a day.
func Until(clock string, now time.Time) (time.Duration, error) {
	at, err := time.Parse("15:04", clock)
	if err != nil {
		return 0, errors.New("want a time of day in UTC, such as 09:00")
	}
	y, m, d := now.UTC().Date()
	left := time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, time.UTC).Sub(now)
	if left <= 0 {
		left += day
	}
	return left, nil
}

// Format formats a duration for Parse, such as 5m (not 5m0s).
func Format(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
