package api

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A Backup is a copy of the journal as a tar archive.
type Backup interface {
	Write(w io.Writer) error
	Close()
}

// getJournal sends a backup. Only one backup runs at a time, because a second one would
// slow down the first.
func (r *request) getJournal(*admin.None) (*admin.Stream, error) {
	a := r.api
	if a.opt.Backup == nil {
		return nil, errNoJournal
	}
	if !a.backingUp.CompareAndSwap(false, true) {
		return nil, problemf(http.StatusConflict, "another backup is running; retry when it has finished")
	}
	copied, err := a.opt.Backup()
	if copied == nil {
		a.backingUp.Store(false)
		status := http.StatusInternalServerError
		if err == nil {
			status, err = http.StatusConflict, errors.New("the journal is empty: no job was put yet")
		}
		return nil, problemf(status, "%v", err)
	}
	return &admin.Stream{Disposition: "attachment", Write: func(w io.Writer) error {
		began := time.Now()
		var count counter
		result := "ok"
		err := copied.Write(io.MultiWriter(w, &count))
		if err != nil {
			result = err.Error()
		}
		a.opt.Logger.Info("a backup through the API", "identity", r.caller.Identity.Name(), "client", r.caller.Address, "bytes", count,
			"took", time.Since(began).Round(time.Millisecond), "result", result)
		return err
	}, Close: func() {
		copied.Close()
		a.backingUp.Store(false)
	}}, nil
}

// A counter counts written bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
