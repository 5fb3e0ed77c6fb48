package control

import (
	"context"
	"slices"
	"testing"
)

// The leader compares the settings in a report with its own, and status shows the names
// of those that differ. A report without settings keeps the names.
func TestReport(t *testing.T) {
	c := Control{}
	send := func(settings string) string {
		t.Helper()
		reply, err := c.Request(context.Background(), 42, []byte(`{"do":"report","health":{"trouble":"slow"}`+settings+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	const settings = `,"settings":{"max-job-size":"9","rules":"abc","newer":"1"}`
	if got := send(settings); got != "null" {
		t.Errorf("before this member's settings are set: %s", got)
	}
	c.reports.settings = func() map[string]string { return map[string]string{"max-job-size": "10", "rules": "abc", "older": "2"} }
	for _, text := range []string{settings, ""} {
		got := send(text)
		h, differs := c.reports.of(42)
		if got != `["max-job-size"]` || !slices.Equal(differs, []string{"max-job-size"}) || h.Trouble != "slow" {
			t.Errorf("reply %s; stored: %q, %+v", got, differs, h)
		}
	}
	got := send(`,"settings":{"max-job-size":"10"}`)
	if _, differs := c.reports.of(42); got != "[]" || len(differs) > 0 {
		t.Errorf("reply %s; stored: %q", got, differs)
	}
}
