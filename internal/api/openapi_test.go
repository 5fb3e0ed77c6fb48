package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
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

// A page of another origin cannot make a browser change the server. Pages of this origin,
// and programs, can.
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
