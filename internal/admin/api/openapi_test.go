package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// The description and the table of operations have the same operations, and the
// description says which right each needs, as the table has it.
func TestDescription(t *testing.T) {
	doc := document()
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	described := make(map[string]string)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described[method+" "+path] = op.OperationID
			if op.Responses.Default() == nil {
				t.Errorf("%s has no default response", op.OperationID)
			}
		}
	}
	for i := range operations {
		op := &operations[i]
		at := op.method + " " + op.path
		if described[at] != op.id {
			t.Errorf("%s is %q in openapi.yaml, %q in the table", at, described[at], op.id)
			continue
		}
		delete(described, at)
		item := doc.Paths.Value(op.path)
		described := parametersOf(item.Parameters, item.GetOperation(op.method).Parameters)
		if takes := slices.Sorted(slices.Values(strings.Fields(op.takes))); !slices.Equal(takes, described) {
			t.Errorf("%s takes %q, and the description has %q", op.id, takes, described)
		}
		text := strings.Join(strings.Fields(item.GetOperation(op.method).Description), " ")
		if want := needText(&op.need, op.id); !strings.Contains(text, want) {
			t.Errorf("the description of %s does not say %q", op.id, want)
		}
	}
	for at, id := range described {
		t.Errorf("%s, %s, is not in the table", at, id)
	}
}

// parametersOf returns the names of the parameters after the path, in order.
func parametersOf(lists ...openapi3.Parameters) (names []string) {
	for _, p := range slices.Concat(lists...) {
		if p.Value.In == "query" {
			names = append(names, p.Value.Name)
		}
	}
	slices.Sort(names)
	return names
}

// needText is how the description names what an operation needs.
func needText(n *rights.Need, id string) string {
	if *n == rights.Free {
		return "eeds no right."
	}
	join := " and "
	if n.OneOf {
		join = " or "
	}
	set := strings.ReplaceAll(n.Rights.String(), ",", join)
	on := map[rights.Place]string{
		rights.SomeTube: "some tube", rights.EveryTube: "every tube", rights.NamedTube: "the tube", rights.TubeOfJob: "its tube", rights.TwoTubes: "both tubes",
	}[n.Place]
	if id == "getTube" {
		on = "it"
	}
	return fmt.Sprintf("eeds the right %s on %s", set, on)
}

// Whatever the API answers outside of operations is a problem, too.
func TestOutsideOperations(t *testing.T) {
	r := start(t, Options{})
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nothing", 404, ""},
		{"GET", "/tubes/", 404, ""},
		{"GET", "/tubes/a/b", 404, ""},
		{"PUT", "/tubes/a/jobs", 405, "GET, HEAD, POST"},
		{"GET", "/drain", 405, "POST"},
		{"PUT", "/jobs/1", 405, "DELETE, GET, HEAD, PATCH"},
		{"POST", "/openapi.yaml", 405, "GET, HEAD"},
	} {
		h := newRequest(test.method, test.path, "")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		r.conforms(h, "", w)
		if w.Code != test.status || w.Header().Get("Allow") != test.allow {
			t.Errorf("%s %s: %d, %q", test.method, test.path, w.Code, w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", Prefix+"/openapi.yaml", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml" || !slices.Equal(w.Body.Bytes(), description) {
		t.Errorf("openapi.yaml: %d", w.Code)
	}
}

// A page of another origin cannot make a browser change something; a page of this one,
// and what is no browser, can.
func TestBrowsers(t *testing.T) {
	r := start(t, Options{})
	for _, test := range []struct {
		header, value string
		method        string
		status        int
	}{
		{"Sec-Fetch-Site", "cross-site", "POST", 403},
		{"Sec-Fetch-Site", "same-site", "POST", 403},
		{"Sec-Fetch-Site", "same-origin", "POST", 204},
		{"Origin", "https://evil.example", "POST", 403},
		{"Origin", "null", "POST", 403},
		{"Origin", "http://example.com", "POST", 204}, // the host of the request
		{"Sec-Fetch-Site", "cross-site", "GET", 405},  // it reads, and gets no CORS header
	} {
		h := newRequest(test.method, "/undrain", "")
		h.Header.Set(test.header, test.value)
		if code, body := r.send(h, ""); code != test.status {
			t.Errorf("%s: %s: %d %s, want %d", test.header, test.value, code, body, test.status)
		}
	}
	h := newRequest("GET", "/stats", "")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, h)
	if got := w.Header(); got.Get("Cache-Control") != "no-store" || got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers %v", got)
	}
	h.Method = http.MethodOptions
	if code, _ := r.send(h, ""); code != 405 {
		t.Errorf("OPTIONS: %d", code)
	}
}
