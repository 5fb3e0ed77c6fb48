package api

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/server"
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
	r.record(r.op.ID, result)
}

// record writes the line of something that has changed the queue, or could not.
func (r *request) record(operation, result string) {
	if r.caller.Via != "" {
		r.note("via", r.caller.Via)
	}
	args := append([]any{"operation", operation, "identity", r.caller.Identity.Name(), "client", r.caller.Address}, r.notes...)
	r.api.opt.Logger.Info("a change through the API", append(args, "result", result)...)

	r.api.changes.add(&admin.Change{Operation: operation, Identity: r.caller.Identity.Name(), Client: r.caller.Address, About: aboutOf(r.notes), Result: result})
}

// recordCommand remembers what a command of the protocol has changed; the server has logged it.
func (a *API) recordCommand(c *server.Change) {
	about := aboutOf(c.About)
	about["via"] = "protocol"
	a.changes.add(&admin.Change{Operation: c.Command, Identity: c.Identity, Client: c.Client, About: about, Result: "ok"})
}

// aboutOf returns notes, which are names and values, by their names.
func aboutOf(notes []any) map[string]any {
	about := make(map[string]any)
	for i := 0; i+1 < len(notes); i += 2 {
		if name, ok := notes[i].(string); ok {
			about[name] = noteText(notes[i+1])
		}
	}
	return about
}

// noteText returns what JSON shows of a note: its text, if it has one, as the log does.
func noteText(value any) any {
	if s, ok := value.(interface{ String() string }); ok {
		return s.String()
	}
	return value
}

// changesKept is how many changes are remembered; the log has all.
const changesKept = 1000

// recentChanges are the last changes.
type recentChanges struct {
	mu   sync.Mutex
	last []admin.Change // the oldest first
}

func (c *recentChanges) add(one *admin.Change) {
	one.Time = time.Now().UTC().Format(time.RFC3339)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == changesKept {
		c.last = append(c.last[:0], c.last[1:]...)
	}
	c.last = append(c.last, *one)
}

// newest returns the last n changes, the newest first.
func (c *recentChanges) newest(n int) []admin.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := slices.Clone(c.last[max(0, len(c.last)-n):])
	slices.Reverse(last)
	return last
}

func (r *request) listChanges(in *admin.ListChanges) (admin.Changes, error) {
	return admin.Changes{Changes: append([]admin.Change{}, r.api.changes.newest(in.Limit)...)}, nil
}
