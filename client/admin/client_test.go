package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// New accepts each form of an address.
func TestNew(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Prefix+"/me" || r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("asked for %s with %q", r.URL, r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}"))
	})
	s := httptest.NewServer(answer)
	defer s.Close()
	socket := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := httptest.NewUnstartedServer(answer)
	local.Listener.Close()
	local.Listener = l
	local.Start()
	defer local.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, addr := range []string{s.URL, s.URL + "/", "127.0.0.1" + port, port, "unix:" + socket} {
		c, err := New(addr, "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "GET /me", nil, new(struct{})); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for addr, want := range map[string]string{"host": "http://host:11380", "::1": "http://[::1]:11380", "https://host/queue": "https://host/queue"} {
		if h, err := NewHTTP(addr, nil, 0); err != nil || h.URL != want {
			t.Errorf("%s: %+v, %v", addr, h, err)
		}
	}
	for _, addr := range []string{"", "host/path", "ftp://host", "http://"} {
		if _, err := New(addr, ""); err == nil {
			t.Errorf("%q is accepted", addr)
		}
	}
}

// A request to a server that does not answer ends after a timeout.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New("memory", "")
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go io.Copy(io.Discard, theirs)
		transport := c.transport.(*HTTP).Client.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		began := time.Now()
		err = c.Do(t.Context(), "GET /me", nil, nil)
		var timeout net.Error
		if took := time.Since(began); !errors.As(err, &timeout) || !timeout.Timeout() || took != DefaultTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}
