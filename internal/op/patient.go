package op

import (
	"io"
	"net/http"
	"time"
)

// A Patient lets each part of a stream come in time, however long the whole is.
type Patient struct {
	io.Reader
	Control *http.ResponseController
}

// partTimeout is how long the next part of a stream may take to come.
const partTimeout = 30 * time.Second

// Read implements io.Reader.
func (p Patient) Read(b []byte) (int, error) {
	p.Control.SetReadDeadline(time.Now().Add(partTimeout)) // a recorder of a test has none
	return p.Reader.Read(b)
}
