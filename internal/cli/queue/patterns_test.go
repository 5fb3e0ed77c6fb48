package queue

import (
	"slices"
	"testing"
)

func TestPatterns(t *testing.T) {
	all := []string{"a", "mail", "mail.in", "mail/x", "m$(1)"}
	for name, want := range map[string][]string{
		"mail":   {"mail"},
		"mail*":  {"mail", "mail.in", "mail/x"},
		"mail.*": {"mail.in"},
		"?":      {"a"},
		"*(?)":   {"m$(1)"},
		"*":      all,
		"x*":     nil,
	} {
		fits := pattern(name).MatchString
		got := slices.DeleteFunc(slices.Clone(all), func(tube string) bool { return !fits(tube) })
		if !slices.Equal(got, want) {
			t.Errorf("%s fits %q, want %q", name, got, want)
		}
	}
}
