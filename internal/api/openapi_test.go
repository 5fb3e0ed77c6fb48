package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The description is valid.
func TestDescription(t *testing.T) {
	if err := document().Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
}

// Errors outside of operations are also problem documents.
func TestOutsideOperations(t *testing.T) {
	r := start(t, Options{})
	for _, test := range []struct {
		method, path string
	}{
		{"GET", "/nothing"},
		{"GET", "/tubes/"},
		{"GET", "/tubes/a/b"},
		{"PUT", "/tubes/a/jobs"},
		{"GET", "/drain"},
		{"POST", "/openapi.yaml"},
	} {
		h := newRequest(test.method, test.path, "")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		r.conforms(h, "", w)
		if w.Code != 404 || !strings.Contains(w.Body.String(), "no operation "+test.method+" ") {
			t.Errorf("%s %s: %d %s", test.method, test.path, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", Prefix+"/openapi.yaml", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml" || !slices.Equal(w.Body.Bytes(), description) {
		t.Errorf("openapi.yaml: %d", w.Code)
	}
}

// A page of another origin cannot make a browser change the server. Pages of the server's
// own origin, and programs, can.
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
		{"Origin", "http://example.com", "POST", 204}, // the origin is the host of the request
		{"Sec-Fetch-Site", "cross-site", "GET", 404},  // a read, whose response has no CORS header
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
	if code, _ := r.send(h, ""); code != 404 {
		t.Errorf("OPTIONS: %d", code)
	}
}
