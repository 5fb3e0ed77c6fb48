package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A textBackup is a backup that contains a text, and then fails if err is not nil.
type textBackup struct {
	text   string
	err    error
	closed func()
}

func (b *textBackup) Write(w io.Writer) error {
	io.WriteString(w, b.text)
	return b.err
}

func (b *textBackup) Close() { b.closed() }

func emptyBackup() (Backup, error) { return &textBackup{closed: func() {}}, nil }

func TestBackup(t *testing.T) {
	closed := 0
	next := &textBackup{"archive", nil, func() { closed++ }}
	var failed error
	empty := false
	r := start(t, Options{Backup: func() (Backup, error) {
		if empty || failed != nil {
			return nil, failed
		}
		return next, nil
	}})
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, newRequest("GET", "/journal", ""))
		return w
	}
	w := get()
	if w.Code != 200 || w.Body.String() != "archive" || w.Header().Get("Content-Type") != "application/x-tar" || closed != 1 {
		t.Errorf("%d %v %q, closed %d times", w.Code, w.Header(), w.Body, closed)
	}
	if line := r.log.String(); !strings.Contains(line, `msg="a backup through the API" identity="" client=`) || !strings.Contains(line, "bytes=7 took=") {
		t.Error(line)
	}

	// The client detects a failure because the connection is closed.
	next.err = errors.New("the disk cannot be read")
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("panic %v", v)
			}
		}()
		get()
	}()
	if closed != 2 || !strings.Contains(r.log.String(), `result="the disk cannot be read"`) {
		t.Errorf("closed %d times: %s", closed, r.log)
	}

	failed = errors.New("too many segments")
	if got := r.want(500, "GET", "/journal", "", nil); !strings.Contains(got, "too many segments") {
		t.Error(got)
	}
	failed, next.err = nil, nil
	empty = true
	if got := r.want(409, "GET", "/journal", "", nil); !strings.Contains(got, "no job was put yet") {
		t.Error(got)
	}
	empty = false
	r.backingUp.Store(true)
	r.want(409, "GET", "/journal", "", nil)
	r.backingUp.Store(false)
	r.want(400, "GET", "/journal?x=1", "", nil)
	next.err = errors.New("it is written")
	if r.want(200, "HEAD", "/journal", "", nil) != "" {
		t.Error("HEAD makes a backup")
	}
	next.err = nil
	r.want(200, "GET", "/journal", "", nil)
}
