package api

import (
	"errors"
	"net/http"
)

// note adds what a change is about to its line in the log.
func (r *request) note(name string, value any) { r.notes = append(r.notes, name, value) }

// audit writes the line of a change that was made, or could not be. A request that was
// not understood changes nothing, and has no line; one of somebody who may not do that
// has another one.
func (r *request) audit(err error) {
	result := "ok"
	if p, ok := errors.AsType[*problem](err); ok {
		switch p.Status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			return
		}
		result = p.Detail
	}
	args := append([]any{"operation", r.op.id, "identity", r.who.Name(), "client", r.http.RemoteAddr}, r.notes...)
	r.api.opt.Logger.Info("a change through the API", append(args, "result", result)...)
}
