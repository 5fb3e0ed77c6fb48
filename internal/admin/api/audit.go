package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
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
	r.record(r.op.id, result)
}

// record writes the line of something that has changed the queue, or could not.
func (r *request) record(operation, result string) {
	via, _ := r.http.Context().Value(viaKey{}).(string)
	if via != "" {
		r.note("via", via)
	}
	args := append([]any{"operation", operation, "identity", r.who.Name(), "client", r.http.RemoteAddr}, r.notes...)
	r.api.opt.Logger.Info("a change through the API", append(args, "result", result)...)

	c := Change{Time: time.Now().UTC().Format(time.RFC3339), Operation: operation, Identity: r.who.Name(), Client: r.http.RemoteAddr,
		About: make(map[string]any), Result: result}
	for i := 0; i+1 < len(r.notes); i += 2 {
		if name, ok := r.notes[i].(string); ok {
			c.About[name] = noteText(r.notes[i+1])
		}
	}
	r.api.changes.add(&c)
}

// noteText returns what JSON shows of a note: its text, if it has one, as the log does.
func noteText(value any) any {
	if s, ok := value.(interface{ String() string }); ok {
		return s.String()
	}
	return value
}

type viaKey struct{}

// WithVia returns a context whose changes are noted to have come through something, such as
// the console.
func WithVia(ctx context.Context, via string) context.Context {
	return context.WithValue(ctx, viaKey{}, via)
}

// A Change is one that was made through the API, or could not be.
type Change struct {
	Time      string         `json:"time"`
	Operation string         `json:"operation"`
	Identity  string         `json:"identity"`
	Client    string         `json:"client"`
	About     map[string]any `json:"about"`
	Result    string         `json:"result"`
}

// Changes are the last ones, the newest first.
type Changes struct {
	Changes []Change `json:"changes"`
}

// changesKept is how many changes are remembered; the log has all.
const changesKept = 1000

// recentChanges are the last changes.
type recentChanges struct {
	mu   sync.Mutex
	last []Change // the oldest first
}

func (c *recentChanges) add(one *Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == changesKept {
		c.last = append(c.last[:0], c.last[1:]...)
	}
	c.last = append(c.last, *one)
}

// newest returns the last n changes, the newest first.
func (c *recentChanges) newest(n int) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := slices.Clone(c.last[max(0, len(c.last)-n):])
	slices.Reverse(last)
	return last
}

func listChanges(r *request) (reply, error) {
	n, err := r.limit(changesKept)
	if err != nil {
		return reply{}, err
	}
	return reply{body: Changes{append([]Change{}, r.api.changes.newest(n)...)}}, nil
}
