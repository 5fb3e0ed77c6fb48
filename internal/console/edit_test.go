package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A user corrects a failed Laravel job in place, and the job runs again.
func TestEdit(t *testing.T) {
	r := start(t, nil, Options{})
	laravel := `{"displayName":"Mail","data":{"command":"O:4:\"Mail\":1:{s:2:\"to\";s:5:\"a@b.c\";}"}}`
	id := r.put("mail", laravel)
	r.in(func(e *engine.Engine, now int64) { e.BuryJob(id, 0) })
	path := fmt.Sprintf("/console/job/%d/edit", id)
	body := func() (text string) {
		r.in(func(e *engine.Engine, now int64) {
			j, _ := e.Peek(id)
			text = string(j.Body)
		})
		return text
	}
	field := func(text, name string) string {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in %s", name, text)
		}
		return html.UnescapeString(m[1])
	}
	edit := func(status int, form url.Values) string {
		t.Helper()
		w := r.send("POST", path, form)
		if w.Code != status {
			t.Fatalf("%v: %d %s", form, w.Code, w.Body)
		}
		if status == http.StatusSeeOther {
			return r.send("GET", w.Header().Get("Location"), nil).Body.String()
		}
		return w.Body.String()
	}
	if text := r.page(200, fmt.Sprintf("/console/job/%d", id)); !strings.Contains(text, `href="`+path+`"`) {
		t.Error(text)
	}
	page := r.page(200, path)
	m := regexp.MustCompile(`(?s)<textarea name="text"[^>]*>\n(.*?)</textarea>`).FindStringSubmatch(page)
	if m == nil || !strings.Contains(page, "Save and kick") {
		t.Fatal(page)
	}
	text, was := html.UnescapeString(m[1]), field(page, "was")

	// The page shows the error and keeps the typed text.
	if page := edit(422, url.Values{"was": {was}, "text": {`{"a":`}}); !strings.Contains(page, `{&#34;a&#34;:</textarea>`) || !strings.Contains(page, "Not JSON: line 1, column 5: unexpected end") {
		t.Error(page)
	}
	if page := edit(422, url.Values{"was": {was}, "text": {strings.Replace(text, `"to"`, `"from"`, 1)}}); !strings.Contains(page, "you can change values, but not keys") {
		t.Error(page)
	}
	if page := edit(422, url.Values{"was": {"another"}, "text": {text}}); !strings.Contains(page, "Another user has changed the body") || field(page, "was") != was {
		t.Error(page)
	}
	if body() != laravel {
		t.Fatal(body())
	}

	mended := strings.Replace(text, "a@b.c", "ann@b.c", 1)
	after := edit(303, url.Values{"was": {was}, "text": {strings.ReplaceAll(mended, "\n", "\r\n")}})
	if want := strings.Replace(laravel, `5:\"a@b.c`, `7:\"ann@b.c`, 1); body() != want || !strings.Contains(after, "has a new body of") {
		t.Fatalf("%s\n%s", body(), after)
	}
	after = edit(303, url.Values{"was": {field(r.page(200, path), "was")}, "text": {mended}, "then": {"kick"}})
	if !strings.Contains(after, "It is ready.") {
		t.Error(after)
	}
	if !strings.Contains(body(), "ann@b.c") {
		t.Error(body())
	}

	// A binary body is edited as base64. The body of a reserved job cannot be edited.
	id = r.put("odd", "\x81\xa2id\x11")
	path = fmt.Sprintf("/console/job/%d/edit", id)
	page = r.page(200, path)
	if !strings.Contains(page, "gaJpZBE=</textarea>") {
		t.Error(page)
	}
	edit(422, url.Values{"was": {field(page, "was")}, "text": {"?"}})
	if edit(303, url.Values{"was": {field(page, "was")}, "text": {"AP8="}}); body() != "\x00\xff" {
		t.Errorf("%q", body())
	}
	r.talk("watch odd", fmt.Sprintf("reserve-job %d", id))
	r.page(409, path)
}
