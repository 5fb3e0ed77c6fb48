package gzipped

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	for accepts, want := range map[string]string{
		"": "", "gzip": "gzip", "GZIP ; q=0.5": "gzip", "br, gzip;q=1.0": "gzip", "gzip;q=0": "", "gzip; q=0.000, *": "", "identity": "", "br;q=1, gzipped": "",
	} {
		for _, text := range []string{strings.Repeat("x", Smallest), strings.Repeat("x", Smallest-1)} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("Accept-Encoding", accepts)
			Write(w, r, 201, []byte(text))
			if len(text) < Smallest {
				want = ""
			}
			if got := w.Header().Get("Content-Encoding"); got != want || w.Code != 201 || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q, %d bytes: encoding %q, want %q; %d %v", accepts, len(text), got, want, w.Code, w.Header())
			}
			if (w.Body.Len() < len(text)) != (want != "") {
				t.Errorf("%q: %d bytes of %d", accepts, w.Body.Len(), len(text))
			}
		}
	}
}
