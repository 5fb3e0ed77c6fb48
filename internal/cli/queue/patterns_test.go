package queue

import (
	"slices"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	all := []string{"a", "mail", "mail.in", "mail/x", "m$(1)"}
	for pattern, want := range map[string][]string{
		"mail":   {"mail"},
		"mail*":  {"mail", "mail.in", "mail/x"},
		"mail.*": {"mail.in"},
		"?":      {"a"},
		"*(?)":   {"m$(1)"},
		"*":      all,
		"x*":     nil,
	} {
		got := fitting(pattern, all)
		if !slices.Equal(got, want) {
			t.Errorf("%s fits %q, want %q", pattern, got, want)
		}
	}
}

func TestLeadingOptions(t *testing.T) {
	for line, want := range map[string]int{
		"tubes": 0, "--addr x tubes": 2, "--addr=x tubes": 1, "-a x tubes": 2, "-ax tubes": 1, "--tls --json tubes": 2,
		"--tls=false --token t tubes -n 1": 3, "-b dir": 0, "--addr x -b dir": 2, "--addr": 1, "-": 0, "": 0,
	} {
		if got := LeadingOptions(strings.Fields(line)); got != want {
			t.Errorf("%q begins with %d, want %d", line, got, want)
		}
	}
}
