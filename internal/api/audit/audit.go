// Package audit records changes and their clients. The log of the server has a line for
// each change, and the history keeps changes for 31 days. An operation starts an entry,
// adds the attributes of the change, and writes the entry with its result:
//
//	entry := log.Begin(&caller, "deleteJob", "")
//	entry.Note("job", id)
//	entry.Write(err)
//
// An entry never contains a body or a token.
package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/history"
)

// A Log records the changes of a server.
type Log struct {
	Logger *slog.Logger
	Store  *history.Store

	mu   sync.Mutex
	day  string         // in UTC
	made map[client]int // number of changes of this day
}

// A client is an identity, or the address of a client without an identity.
type client struct {
	who    string
	failed bool // whether its changes are failures
}

const (
	maxChanges  = 1000 // per client and day in the history
	maxFailures = 100
	maxClients  = 10_000 // elements of Log.made; beyond it, counting starts again
)

// maxEntry is the size in bytes above which the history stores an entry without its
// attributes.
const maxEntry = 4 << 10

// Add records a change in the history. It returns false for a change that the history
// omits: a client has a daily number of changes, so that a program that makes many does
// not displace all others.
func (l *Log) Add(one *admin.Change) bool {
	now := time.Now().UTC()
	switch left := l.left(one, now.Format(time.DateOnly)); {
	case left < 0:
		return false
	case left == 0:
		one.About["omitted"] = "later entries of this client on this day"
	}
	one.Time = now.Format(time.RFC3339)
	text, err := json.Marshal(one)
	if err != nil || len(text) > maxEntry {
		short := *one
		short.About = map[string]any{}
		short.Result = short.Result[:min(len(short.Result), maxEntry/2)]
		text, _ = json.Marshal(&short) // contains only strings
	}
	l.Store.AddChange(now.UnixMilli(), text)
	return true
}

// left counts a change, and returns the number of changes that its client has left on
// this day.
func (l *Log) left(one *admin.Change, day string) int {
	by := client{cmp.Or(one.Identity, (&access.Caller{Address: one.Client}).IP().String()), one.Result != "ok"}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.day != day || len(l.made) >= maxClients {
		l.day, l.made = day, make(map[client]int)
	}
	l.made[by]++
	if by.failed {
		return maxFailures - l.made[by]
	}
	return maxChanges - l.made[by]
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
	for at, text := range l.Store.Changes(to) {
		if at < from || len(list.Changes) >= in.Limit {
			break
		}
		var c admin.Change
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // float64 cannot represent all job ids
		if d.Decode(&c) == nil && (in.Identity == nil || c.Identity == *in.Identity) && (in.Operation == "" || c.Operation == in.Operation) &&
			(in.Tube == "" || c.About["tube"] == in.Tube || c.About["to"] == in.Tube) {
			list.Changes = append(list.Changes, c)
		}
	}
	return list, nil
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

// Share returns the owner of the client's share of a common limit.
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
	kept := e.log.Add(&admin.Change{Operation: e.operation, Identity: e.Identity(), Client: e.caller.Address, About: About(e.notes), Result: result})
	if !kept && err != nil {
		return // a failure costs its client nothing, and must not fill the log
	}
	args := append([]any{"operation", e.operation, "identity", e.Identity(), "client", e.caller.Address}, e.notes...)
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
