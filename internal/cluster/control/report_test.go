package control

import (
	"slices"
	"testing"
)

// The leader compares the settings in a report with its own.
func TestReport(t *testing.T) {
	c := Control{}
	c.reports.add(41, report{settings: map[string]string{"max-job-size": "10", "rules": "abc", "older": "2"}})
	for size, want := range map[string][]string{"9": {"max-job-size"}, "10": nil} {
		_, err := c.Request(t.Context(), 42, []byte(`{"do":"report","health":{"trouble":"slow"},"settings":{"max-job-size":"`+size+`","rules":"abc","newer":"1"}}`))
		h, differs := c.reports.of(42, 41)
		if err != nil || !slices.Equal(differs, want) || h.Trouble != "slow" {
			t.Errorf("size %s: %q, %+v, %v", size, differs, h, err)
		}
	}
}
