// Package audit records changes and their clients. The server's log has a line for each
// change, and the history keeps changes for 31 days. An operation starts an entry, adds
// the attributes of the change, and writes the entry with its result. The operation's
// context contains the entry, so that all parts of the work can add attributes:
//
//	entry := log.Begin(&caller, "deleteJob")
//	ctx = audit.With(ctx, entry)
//	audit.Of(ctx).Note("job", id)
//	entry.Write(err)
//
// An entry never contains a body or a token. A client that makes very many changes, or
// repeats a change that fails, cannot fill the log or the history; see [Log.Add].
package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/history"
)

// A Log records the changes of a server.
type Log struct {
	Logger *slog.Logger
	Store  *history.Store

	mu     sync.Mutex // turns wait for this lock
	quotas map[quotaKey]*quota

	searching sync.Mutex
	pausers   map[string]string // identities that paused tubes, up to pausersAt
	pausersAt int64
}

// A quotaKey selects a quota. who is an identity, or the address of a client without an
// identity.
type quotaKey struct {
	who    string
	failed bool
}

// A quota limits the entries of a client.
type quota struct {
	*rate.Limiter
	omitted int // number of changes omitted since the last entry
}

const (
	maxQuotas  = 10_000 // maximum number of clients with quotas; beyond it, all get new ones
	maxText    = 500    // maximum size of an attribute in the history, in bytes
	maxEntry   = 4 << 10
	pauseDepth = 1000 // number of changes that Pausers searches
)

// Add records a change in the history. It returns false for a change that it omits: each
// client has a quota of 1,000 changes and then one a minute, and of 60 failures and then
// one in ten minutes. The next entry contains the number of omitted changes.
func (l *Log) Add(one *admin.Change) bool {
	now, failed := time.Now(), one.Result != "ok"
	addr, _ := netip.ParseAddrPort(one.Client)
	l.mu.Lock()
	defer l.mu.Unlock()
	key := quotaKey{cmp.Or(one.Identity, addr.Addr().String()), failed}
	q := l.quotas[key]
	if q == nil {
		if len(l.quotas) >= maxQuotas || l.quotas == nil {
			l.quotas = make(map[quotaKey]*quota)
		}
		q = &quota{Limiter: rate.NewLimiter(rate.Every(time.Minute), 1000)}
		if failed {
			q = &quota{Limiter: rate.NewLimiter(rate.Every(10*time.Minute), 60)}
		}
		l.quotas[key] = q
	}
	if !q.AllowN(now, 1) {
		q.omitted++
		return false
	}
	if one.About == nil {
		one.About = make(map[string]any)
	}
	if q.omitted > 0 {
		one.About["omitted"], q.omitted = q.omitted, 0
	}
	one.Time = now.UTC().Format(time.RFC3339)
	l.Store.AddChange(failed, now.UnixMilli(), encode(one))
	return true
}

// encode returns the JSON of a change. It truncates long texts.
func encode(one *admin.Change) []byte {
	cut := func(s string) string {
		if len(s) > maxText {
			s = strings.ToValidUTF8(s[:maxText], "") + "…"
		}
		return s
	}
	short := *one
	short.Result, short.About = cut(one.Result), make(map[string]any)
	for name, value := range one.About {
		if s, ok := value.(string); ok {
			value = cut(s)
		}
		short.About[name] = value
	}
	text, err := json.Marshal(&short)
	if err != nil || len(text) > maxEntry {
		short.About = nil
		text, _ = json.Marshal(&short) // contains only strings
	}
	return text
}

// List returns the changes that match, the newest first.
func (l *Log) List(in *admin.ListChanges) (admin.Changes, error) {
	list := admin.Changes{Changes: []admin.Change{}}
	from, to := int64(0), int64(math.MaxInt64)
	if in.Day != "" {
		day, err := time.Parse(time.DateOnly, in.Day)
		if err != nil {
			return list, err
		}
		from, to = day.UnixMilli(), day.AddDate(0, 0, 1).UnixMilli()
	}
	var parts [][]byte // parts that the JSON of each matching change contains
	for _, value := range []string{*cmp.Or(in.Identity, new(string)), in.Operation, in.Tube} {
		if value != "" {
			part, _ := json.Marshal(value)
			parts = append(parts, part)
		}
	}
	l.each(from, to, parts, func(c *admin.Change) bool {
		if (in.Identity == nil || c.Identity == *in.Identity) && (in.Operation == "" || c.Operation == in.Operation) &&
			(in.Tube == "" || c.About["tube"] == in.Tube || c.About["to"] == in.Tube) {
			list.Changes = append(list.Changes, *c)
		}
		return len(list.Changes) < in.Limit
	})
	return list, nil
}

// each calls f for the changes that contain the given parts, from the newest to the
// oldest between two times in ms, until f returns false.
func (l *Log) each(from, to int64, parts [][]byte, f func(c *admin.Change) bool) {
	for at, text := range l.Store.Changes(to) {
		if at < from {
			return
		}
		if slices.ContainsFunc(parts, func(part []byte) bool { return !bytes.Contains(text, part) }) {
			continue // much faster than decoding it
		}
		var c admin.Change
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // float64 cannot represent all job ids
		if d.Decode(&c) == nil && !f(&c) {
			return
		}
	}
}

// Pausers returns the identities that paused tubes, according to the last changes. The
// caller must not modify the map.
func (l *Log) Pausers() map[string]string {
	newest := l.Store.Newest()[history.Changes]
	l.searching.Lock()
	defer l.searching.Unlock()
	if l.pausers != nil && l.pausersAt == newest {
		return l.pausers
	}
	l.pausers, l.pausersAt = make(map[string]string), newest
	left := pauseDepth
	l.each(0, math.MaxInt64, nil, func(c *admin.Change) bool {
		tube, _ := c.About["tube"].(string)
		if _, known := l.pausers[tube]; !known && c.Result == "ok" && (c.Operation == "pauseTube" || c.Operation == "pause-tube") {
			l.pausers[tube] = c.Identity
		}
		left--
		return left > 0
	})
	return l.pausers
}

// An Entry describes a change in progress. It must not be used concurrently.
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

// Then starts an entry about a consequence of the change. The consequence can happen
// later, and in another goroutine.
func (e *Entry) Then(operation string) *Entry { return e.log.Begin(e.caller, operation, e.server) }

// Identity returns the name of the client's identity.
func (e *Entry) Identity() string { return e.caller.Identity.Name() }

// Share returns the owner of the quota that the change uses.
func (e *Entry) Share() string { return e.caller.Share() }

// Note adds an attribute of the change.
func (e *Entry) Note(name string, value any) { e.notes = append(e.notes, name, value) }

// Write records the entry. It must be called once. err is the error of a failed change,
// or nil. Invalid requests change nothing and are not recorded.
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
	c := admin.Change{Operation: e.operation, Identity: e.Identity(), Client: e.caller.Address, About: About(e.notes), Result: result}
	if !e.log.Add(&c) && err != nil {
		return
	}
	args := append([]any{"operation", e.operation, "identity", e.Identity(), "client", e.caller.Address}, e.notes...)
	if n := c.About["omitted"]; n != nil && err != nil {
		args = append(args, "omitted", n)
	}
	e.log.Logger.Info("a change through the API", append(args, "result", result)...)
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

// Of returns the entry of a context. If the context has none, Of returns an entry that is
// discarded.
func Of(ctx context.Context) *Entry {
	if e, ok := ctx.Value(key{}).(*Entry); ok {
		return e
	}
	return (&Log{Logger: slog.New(slog.DiscardHandler), Store: history.New(history.Options{})}).Begin(&access.Caller{Identity: new(access.Identity)}, "", "")
}
