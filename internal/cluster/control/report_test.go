package control

import (
	"context"
	"slices"
	"testing"
)

// A member's request is compared with what this one has, and what differs is remembered
// for status.
func TestSettings(t *testing.T) {
	c := Control{}
	ask := func(body string) string {
		t.Helper()
		reply, err := c.Request(context.Background(), 42, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return string(reply)
	}
	const request = `{"do":"settings","settings":{"max-job-size":"9","rules":"abc","newer":"1"}}`
	if got := ask(request); got != "null" {
		t.Errorf("before the own settings are known: %s", got)
	}
	c.settings.own = func() map[string]string { return map[string]string{"max-job-size": "10", "rules": "abc", "older": "2"} }
	if got := ask(request); got != `["max-job-size"]` || !slices.Equal(c.settings.of(42), []string{"max-job-size"}) {
		t.Errorf("%s, and %q is remembered", got, c.settings.of(42))
	}
	if got := ask(`{"do":"settings","settings":{"max-job-size":"10"}}`); got != "[]" || len(c.settings.of(42)) > 0 {
		t.Errorf("%s, and %q is remembered", got, c.settings.of(42))
	}
}
