// Package audit records changes and their clients. The log of the server has a line for
// each change, and the last changes are kept in memory. An operation starts an entry,
// adds the attributes of the change, and writes the entry with its result. The context of
// the operation has the entry, so that all parts of the work can add attributes:
//
//	entry := log.Begin(&caller, "deleteJob")
//	ctx = audit.With(ctx, entry)
//	audit.Of(ctx).Note("job", id)
//	entry.Write(err)
//
// An entry never contains a body or a token.
package audit

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
)

// kept is the number of changes that the Log keeps.
const kept = 1000

// A Log has the last changes of a server.
type Log struct {
	Logger *slog.Logger

	mu   sync.Mutex
	last []admin.Change // the oldest first
}

// Add records a change.
func (l *Log) Add(one *admin.Change) {
	one.Time = time.Now().UTC().Format(time.RFC3339)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == kept {
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, *one)
}

// Newest returns the last n changes, the newest first.
func (l *Log) Newest(n int) admin.Changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := append([]admin.Change{}, l.last[max(0, len(l.last)-n):]...)
	slices.Reverse(last)
	return admin.Changes{Changes: last}
}

// Pausers returns the identities that paused tubes, from the recorded changes.
func (l *Log) Pausers() map[string]string {
	by := make(map[string]string)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.last {
		one := &l.last[i]
		if tube, ok := one.About["tube"].(string); ok && one.Result == "ok" && (one.Operation == "pauseTube" || one.Operation == "pause-tube") {
			by[tube] = one.Identity
		}
	}
	return by
}

// An Entry describes a change while it is made. Only one goroutine uses it.
type Entry struct {
	log       *Log
	caller    *access.Caller
	operation string
	server    string
	notes     []any // alternating names and values
	written   bool
}

// Begin starts an entry. server is the name of another server, or empty for this one.
func (l *Log) Begin(caller *access.Caller, operation, server string) *Entry {
	e := &Entry{log: l, caller: caller, operation: operation, server: server}
	if server != "" {
		e.Note("server", server)
	}
	return e
}

// Then starts an entry about a consequence of the change, which can happen later and in
// another goroutine.
func (e *Entry) Then(operation string) *Entry { return e.log.Begin(e.caller, operation, e.server) }

// Identity returns the name of the client's identity.
func (e *Entry) Identity() string { return e.caller.Identity.Name() }

// Share returns the owner of the quota that the change uses.
func (e *Entry) Share() string { return e.caller.Share() }

// Note adds an attribute of the change.
func (e *Entry) Note(name string, value any) { e.notes = append(e.notes, name, value) }

// Write records the entry. It must be called once. err is the error if the change failed.
// Invalid requests change nothing, and are not recorded.
func (e *Entry) Write(err error) {
	switch admin.StatusOf(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return
	}
	if e.written {
		return
	}
	e.written = true
	result := "ok"
	if err != nil {
		result = err.Error()
	}
	if e.caller.Via != "" {
		e.Note("via", e.caller.Via)
	}
	args := append([]any{"operation", e.operation, "identity", e.Identity(), "client", e.caller.Address}, e.notes...)
	e.log.Logger.Info("a change through the API", append(args, "result", result)...)

	e.log.Add(&admin.Change{Operation: e.operation, Identity: e.Identity(), Client: e.caller.Address, About: About(e.notes), Result: result})
}

// About returns alternating names and values as a map.
func About(notes []any) map[string]any {
	about := make(map[string]any)
	for i := 0; i+1 < len(notes); i += 2 {
		if name, ok := notes[i].(string); ok {
			about[name] = notes[i+1]
		}
	}
	return about
}

type key struct{}

// With returns a context with an entry.
func With(ctx context.Context, e *Entry) context.Context { return context.WithValue(ctx, key{}, e) }

// Of returns the entry of a context. Without one, it returns an entry that is discarded.
func Of(ctx context.Context) *Entry {
	if e, ok := ctx.Value(key{}).(*Entry); ok {
		return e
	}
	return (&Log{Logger: slog.New(slog.DiscardHandler)}).Begin(&access.Caller{Identity: new(access.Identity)}, "", "")
}
