// Package audit writes down what was changed and by whom: each change has a line in the log of the server, and the last ones are
// remembered. What may change something begins an entry, adds to it what the change is about, and writes it with its result. The
// context of an operation has its entry, so that whoever does a part of the work, here or at another server, can add to it:
//
//	entry := log.Begin(&caller, "deleteJob")
//	ctx = audit.With(ctx, entry)
//	audit.Of(ctx).Note("job", id)
//	entry.Write(err)
//
// An entry never has a body or a token.
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

// kept is how many changes are remembered; the log has all.
const kept = 1000

// A Log has the changes of a server.
type Log struct {
	Logger *slog.Logger

	mu   sync.Mutex
	last []admin.Change // the oldest first
}

// Add remembers a change.
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

// Pausers returns who has paused tubes, as far as that is remembered.
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

// An Entry is about a change that is being made. One goroutine uses it.
type Entry struct {
	log       *Log
	caller    *access.Caller
	operation string
	server    string
	notes     []any // names and values
	written   bool
}

// Begin begins an entry. A server has a name if it is another one than this.
func (l *Log) Begin(caller *access.Caller, operation, server string) *Entry {
	e := &Entry{log: l, caller: caller, operation: operation, server: server}
	if server != "" {
		e.Note("server", server)
	}
	return e
}

// Then begins an entry about what follows from the change, later and perhaps in another goroutine.
func (e *Entry) Then(operation string) *Entry { return e.log.Begin(e.caller, operation, e.server) }

// Identity returns the name of who makes the change.
func (e *Entry) Identity() string { return e.caller.Identity.Name() }

// Share returns the owner of the share of a common limit that the change takes.
func (e *Entry) Share() string { return e.caller.Share() }

// Note adds what the change is about.
func (e *Entry) Note(name string, value any) { e.notes = append(e.notes, name, value) }

// Write writes the entry, once, with an error if the change could not be made. A request that was not understood changes nothing,
// and is not written down.
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

// About returns notes, which are names and values, by their names.
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

// With returns a context that has an entry.
func With(ctx context.Context, e *Entry) context.Context { return context.WithValue(ctx, key{}, e) }

// Of returns the entry of a context, or one that is not kept.
func Of(ctx context.Context) *Entry {
	if e, ok := ctx.Value(key{}).(*Entry); ok {
		return e
	}
	return (&Log{Logger: slog.New(slog.DiscardHandler)}).Begin(&access.Caller{Identity: new(access.Identity)}, "", "")
}
