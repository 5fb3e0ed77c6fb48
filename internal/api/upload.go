package api

import (
	"io"
	"net/http"
	"time"

	"github.com/beanpole-mq/beanpole/internal/op"
)

// uploadRate is the number of bytes per second that the client of a large request must
// send on average, after uploadGrace. It limits the time for which slow clients keep
// others from sending large requests.
const (
	uploadRate  = 16 << 10
	uploadGrace = 10 * time.Second
)

var errSlowUpload = &op.BindError{Status: http.StatusRequestTimeout, Detail: "the request arrived too slowly: a large request must send 16 KiB per second"}

// An upload is the body of a request. A request is large from the point at which the
// server can buffer more than maxTaskBytes of it.
type upload struct {
	io.ReadCloser
	end    func()        // leaves the gate of large requests; nil if the request is not large
	read   int64         // number of bytes since the request became large
	waited time.Duration // time that the client took to send them
}

// enlarge makes the request a large one.
func (r *request) enlarge() (err error) {
	if u := r.upload; u != nil && u.end == nil {
		u.end, err = r.beginScan(anUpload)
	}
	return err
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := u.ReadCloser.Read(p)
	if u.end == nil {
		return n, err
	}
	u.read += int64(n)
	u.waited += time.Since(began)
	if err == nil && u.waited > uploadGrace+time.Duration(u.read/uploadRate)*time.Second {
		err = errSlowUpload
	}
	return n, err
}
