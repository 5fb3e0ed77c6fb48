package console

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// TestFailuresPage follows the links of a group to its jobs, and to the confirmation of a
// retry.
func TestFailuresPage(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		for _, note := range []string{"Timeout: 17 s", "Timeout: 23 s", "<b>"} {
			id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, []byte(`{"displayName":"Send"}`))
			e.ReserveJob(now, s, id)
			e.Note(s, id, []byte(note))
			e.Bury(s, id, 0)
		}
	})
	text := r.page(200, "/console/failures?tube=mail")
	for _, want := range []string{">Timeout: * s</a>", "<b>2</b>", "&lt;b&gt;</a>", "in 3 jobs"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %s: %s", want, text)
		}
	}
	link := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s: %s", pattern, text)
		}
		return html.UnescapeString(m[1])
	}
	if found := r.page(200, link(`href="([^"]*)" title="Show these jobs">Timeout`)); len(jobLink.FindAllString(found, -1)) != 2 {
		t.Error(found)
	}
	if ask := r.page(200, link(`href="([^"]*do=kick-tube[^"]*)"`)); !strings.Contains(ask, "that match tube:mail state:buried reason=") || !strings.Contains(ask, "The jobs that match, out of <b>3</b> buried now") {
		t.Error(ask)
	}
}
