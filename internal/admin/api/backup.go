package api

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// A Backup is a copy of the journal, to be written as a tar archive.
type Backup interface {
	Write(w io.Writer) error
	Close()
}

// getJournal sends a backup. A second one at the same time would only slow down the first,
// and take as many open files again.
func getJournal(r *request) (reply, error) {
	a := r.api
	if a.opt.Backup == nil {
		return reply{}, errNoJournal
	}
	if r.http.Method == http.MethodHead {
		return reply{stream: archiveHeader}, nil
	}
	if !a.backingUp.CompareAndSwap(false, true) {
		return reply{}, problemf(http.StatusConflict, "another backup is being made: try again when it is done")
	}
	copied, err := a.opt.Backup()
	if copied == nil {
		a.backingUp.Store(false)
		status := http.StatusInternalServerError
		if err == nil {
			status, err = http.StatusConflict, errors.New("there is nothing in the journal: no job was put yet")
		}
		return reply{}, problemf(status, "%v", err)
	}
	return reply{stream: func(w http.ResponseWriter) {
		defer a.backingUp.Store(false)
		defer copied.Close()
		archiveHeader(w)
		began := time.Now()
		count := countingWriter{w: w}
		result := "ok"
		err := copied.Write(&count)
		if err != nil {
			result = err.Error()
		}
		a.opt.Logger.Info("a backup through the API", "identity", r.who.Name(), "client", r.http.RemoteAddr, "bytes", count.n,
			"took", time.Since(began).Round(time.Millisecond), "result", result)
		if err != nil {
			panic(http.ErrAbortHandler) // so that the client sees that it is not whole
		}
	}}, nil
}

func archiveHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Disposition", "attachment")
}

// countingWriter counts what is written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
