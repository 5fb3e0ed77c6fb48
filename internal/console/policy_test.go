package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// The page shows the settings in force with their source. Its form sets and unsets only
// changed settings.
func TestPolicyPage(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, _ int64) { e.SetPolicy("mail-*", "max-attempts=5\n") })
	get := func(path string) (int, string) { w := r.send("GET", path, nil); return w.Code, w.Body.String() }
	post := func(path string, form url.Values) (int, string) {
		w := r.send("POST", path, form)
		return w.Code, w.Body.String()
	}
	code, text := get("/console/tube/mail-1/policy")
	for _, want := range []string{"the file, for *", "set for mail-*", `name="now-max-attempts" value=""`, "Set for mail-1", "Maximum number of reservations before a job is exhausted", `<option>delete</option>`} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("%d, without %s", code, want)
		}
	}
	if _, text = get("/console/tube/mail-1/policy?pattern=mail-*"); !strings.Contains(text, `name="was-max-attempts" value="5"`) || !strings.Contains(text, `name="now-max-attempts" value="5"`) {
		t.Error("the form does not show the pattern's settings")
	}
	set := func() string {
		var text string
		r.in(func(e *engine.Engine, _ int64) { text = e.SetPolicyOf("mail-*") })
		return text
	}
	form := func(pairs ...string) url.Values {
		v := url.Values{"pattern": {"mail-*"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	r.in(func(e *engine.Engine, _ int64) { e.SetPolicy("mail-*", "max-attempts=5\nrate=9/s\n") }) // another user changes the policy here
	if code, text = post("/console/tube/mail-1/policy", form("was-max-attempts", "5", "now-max-attempts", " ", "was-burst", "", "now-burst", "3", "was-rate", "", "now-rate", "")); code != 303 || set() != "burst=3\nrate=9/s\n" {
		t.Errorf("%d %s: %q is set", code, text, set())
	}
	if _, text = get("/console/policies"); !strings.Contains(text, `href="/console/tube/mail-/policy?pattern=mail-%2A">mail-*</a>`) || !strings.Contains(text, "burst=3 rate=9/s") {
		t.Error(text)
	}
	r.put("mail-1", "x")
	if _, text = get("/console/tube/mail-1"); !strings.Contains(text, `/policy">max-releases=9 rate=9/s burst=3</a>`) {
		t.Error(text)
	}
	if code, text = post("/console/tube/mail-1/policy", form("was-rate", "9/s", "now-rate", "much")); code != 422 || !strings.Contains(text, `<small class="late" id="why-rate">Want a rate such as`) || !strings.Contains(text, `name="now-rate" value="much"`) {
		t.Errorf("%d %s", code, text)
	}
	if code, _ = post("/console/tube/mail-1/policy", form("was-rate", "x", "now-rate", "x")); code != 303 || set() != "burst=3\nrate=9/s\n" {
		t.Error(code, set())
	}
	only := start(t, nil, Options{ReadOnly: true})
	if text = only.send("GET", "/console/tube/mail-1/policy", nil).Body.String(); strings.Contains(text, "Save") || !strings.Contains(text, "the file, for *") {
		t.Error("a read-only console has a form")
	}
}

// Each wrong value is reported next to its field, which keeps the typed text.
func TestWrongPolicy(t *testing.T) {
	r := start(t, nil, Options{})
	w := r.send("POST", "/console/tube/mail/policy", url.Values{"pattern": {"mail"}, "now-ttl": {"5 parsecs"}, "now-max-attempts": {"three"}, "now-burst": {"4"}})
	for _, want := range []string{`name="now-ttl" value="5 parsecs"`, `name="now-max-attempts" value="three"`, `name="now-burst" value="4"`, `id="why-ttl"`, `id="why-max-attempts"`,
		"Not saved."} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, without %s: %s", w.Code, want, w.Body)
		}
	}
	w = r.send("POST", "/console/tube/mail/policy", url.Values{"pattern": {"mail"}, "now-ttl": {"2d"}, "now-max-attempts": {"3"}})
	r.in(func(e *engine.Engine, _ int64) {
		if got := e.SetPolicyOf("mail"); w.Code != 303 || got != "max-attempts=3\nttl=2d\n" {
			t.Errorf("%d: %q is set", w.Code, got)
		}
	})
}

// The page hides the name of a dead tube from users without a right on that tube.
func TestPolicyPageHidesDeadTube(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	r.in(func(e *engine.Engine, _ int64) { e.SetPolicy("mail", "dead-tube=payroll\n") })
	if text := r.page(200, "/console/tube/mail/policy", r.login(mailerToken)); strings.Contains(text, "payroll") || !strings.Contains(text, ">hidden<") {
		t.Errorf("the page shows a tube on which the user has no right: %s", text)
	}
	if text := r.page(200, "/console/tube/mail/policy", r.login(rootToken)); !strings.Contains(text, "payroll") {
		t.Error("the page hides the dead tube from a user with all rights")
	}
}
