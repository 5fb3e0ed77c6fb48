package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A request is one that is being served.
type request struct {
	api  *API
	op   *operation
	http *http.Request
	who  *access.Identity

	other *otherServer                         // that is to do it; nil: this one
	tubes func(tell func(*surveyedTube)) error // the tubes of another server; nil: those of this one
	work  *tasks                               // of the server

	control *http.ResponseController
	visit   visit

	// What the path names, as far as it does.
	tube       string
	job        uint64
	connection uint64
	task       uint64

	query url.Values // of the parameters that the operation has

	notes   []any    // for the audit: names and values
	refused []string // the tubes on which rights are lacking, for the log
	after   func()   // is called when the audit has its line; nil: nothing is
}

// turn runs f within a turn of the broker and returns when what it has changed is
// durable. It is the only way to the engine.
func (r *request) turn(f func(e *engine.Engine, now int64) error) error {
	var refused error
	called, err := r.visit.turn(r.api.broker, func(e *engine.Engine, now int64) {
		if refused = r.permittedJob(e); refused == nil {
			refused = f(e, now)
		}
	})
	deposed := errors.Is(err, broker.ErrDeposed)
	switch {
	case refused != nil:
		return refused
	case !called || deposed && !r.op.changes(): // what was seen may never have been
		return errNotLeading
	case deposed:
		return problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed: what was asked for may have happened")
	case err != nil && r.op.changes():
		return problemf(http.StatusInternalServerError, "it is done, but could not be written to the journal: a restart may undo it; the log of the server has the reason")
	}
	return nil
}

// errNotLeading is the answer to what was not done because this server may not decide at the moment, or not go on with what it
// has decided before.
var errNotLeading error = problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed, and nothing more was done: try again").after(time.Second)

// turns runs a step in as many turns as it wants, unless the client goes.
func (r *request) turns(step func(e *engine.Engine, now int64) (more bool, err error)) error {
	return r.turnsUntil(step, func() bool { return true })
}

// turnsUntil is turns, and calls between after each of them; it ends when that returns false.
func (r *request) turnsUntil(step func(e *engine.Engine, now int64) (more bool, err error), between func() bool) error {
	for more := true; more; {
		over, err := r.api.throttle.turn(r.http.Context())
		if err != nil {
			return errGone
		}
		err = r.turn(func(e *engine.Engine, now int64) (err error) {
			more, err = step(e, now)
			over(more)
			return err
		})
		over(false)
		if err != nil || !between() {
			return err
		}
	}
	return nil
}

// errGone is the answer to a client that has gone, for the log.
var errGone = problemf(http.StatusServiceUnavailable, "the connection has ended before all was done")

// perTurn is how many things a turn tells at most, be they jobs, tubes or connections.
const perTurn = 250

// each tells of all things of a list, of several in a turn but not of too many.
func each[T any](r *request, list []T, tell func(e *engine.Engine, now int64, x T)) error {
	return r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		for n := 0; len(list) > 0 && n < perTurn && (n == 0 || !e.Spent()); n++ {
			tell(e, now, list[0])
			list = list[1:]
		}
		return len(list) > 0, nil
	})
}

// permitted asks for the rights that an operation needs, unless they are on the tube of a job,
// which only a turn knows, or on a tube that is yet to be read from the body.
func (r *request) permitted() error {
	if r.other != nil {
		return r.other.permitted(r)
	}
	switch r.op.need.Place {
	case rights.TubeOfJob:
		return nil
	case rights.NamedTube, rights.TwoTubes:
		return r.permittedOn(r.op.need, "the tube "+r.tube, r.tube)
	case rights.SomeTube:
		return r.permittedOn(r.op.need, "some tube")
	}
	return r.permittedOn(r.op.need, "every tube")
}

// permittedJob asks for rights on the tube of the job that the path names. Somebody without
// them is not told which tube that is. A job that does not exist needs none.
func (r *request) permittedJob(e *engine.Engine) error {
	if r.op.need.Place != rights.TubeOfJob {
		return nil
	}
	tube, ok := e.TubeOf(r.job)
	if !ok {
		return problemf(http.StatusNotFound, "there is no job %d", r.job)
	}
	return r.permittedOn(r.op.need, fmt.Sprintf("the tube of job %d", r.job), tube)
}

// permittedOn asks for rights on tubes, of which the answer speaks as where.
func (r *request) permittedOn(n rights.Need, where string, tubes ...string) error {
	if r.who.Meets(n, tubes...) {
		return nil
	}
	r.refused = tubes
	which := "the right"
	if n.OneOf {
		which = "one of the rights"
	}
	return problemf(http.StatusForbidden, "%s needs %s %s on %s", r.op.id, which, n.Rights, where)
}

// decode reads the body of a request, which is one JSON object. It may be empty if
// all of its members may be left out.
func (r *request) decode(into any, optional bool) error {
	kind, _, _ := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	if r.http.ContentLength == 0 && optional && (kind == "" || kind == "application/json") {
		return nil
	}
	if kind != "application/json" {
		return problemf(http.StatusUnsupportedMediaType, "want a JSON object: Content-Type: application/json")
	}
	var text json.RawMessage
	d := json.NewDecoder(r.http.Body)
	if err := d.Decode(&text); err != nil {
		return decodeProblem(err)
	}
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil || named == nil {
		return errNoObject
	}
	if _, err := d.Token(); err != io.EOF {
		return problemf(http.StatusBadRequest, "the body goes on after the JSON object")
	}
	n := 0
	for range members(bytes.TrimSpace(text)) {
		n++
	}
	if n != len(named) {
		return problemf(http.StatusBadRequest, "a member of the JSON object is there twice")
	}
	if err := jobjson.Members(named, into); err != nil {
		return problemf(http.StatusBadRequest, "%v", err)
	}
	return nil
}

var errNoObject = problemf(http.StatusBadRequest, "the body is not a JSON object of the form that openapi.yaml describes")

// decodeProblem says what is wrong with the body of a request, and repeats nothing of it.
func decodeProblem(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", e.Limit)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return problemf(http.StatusBadRequest, "the body is no JSON, from byte %d on", e.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return problemf(http.StatusBadRequest, "the body is empty or ends too soon: want a JSON object")
	}
	return errNoObject
}

// parseQuery reads the parameters after the path. Those that the operation does not have are
// an error, for they are misspelt most likely.
func (r *request) parseQuery() (err error) {
	if r.query, err = url.ParseQuery(r.http.URL.RawQuery); err != nil {
		return problemf(http.StatusBadRequest, "the query is not well-formed")
	}
	names := strings.Fields(r.op.takes)
	for name, values := range r.query {
		if !slices.Contains(names, name) {
			return problemf(http.StatusBadRequest, "there is no parameter %.40q: %s takes %q", name, r.op.id, names)
		}
		if len(values) > 1 {
			return problemf(http.StatusBadRequest, "the parameter %s is there twice", name)
		}
	}
	return nil
}

const (
	defaultLimit   = 100
	maxLimit       = 10_000 // as in list-jobs
	shortList      = 1000   // jobs; a longer list is a walk
	maxConnections = 1000   // each may have a hundred long names
)

// badCursor is the answer to a cursor that came with no page.
func badCursor() error {
	return problemf(http.StatusBadRequest, "cursor: want what a page has as next, or nothing")
}

// limit reads how long a page may be.
func (r *request) limit(most int) (int, error) { return r.number("limit", defaultLimit, 1, most) }

// number reads a parameter that is a number; other: if it is left out.
func (r *request) number(name string, other, least, most int) (int, error) {
	text := r.query.Get(name)
	if text == "" {
		return other, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, problemf(http.StatusBadRequest, "%s: want a number from %d to %d", name, least, most)
	}
	return n, nil
}

// isTrue reads a parameter that is true or false; false: if it is left out.
func (r *request) isTrue(name string) (bool, error) {
	switch r.query.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, problemf(http.StatusBadRequest, "%s: want true or false", name)
}

// parseState reads the name of a state.
func parseState(text string, of ...engine.State) (engine.State, error) {
	for _, s := range of {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, problemf(http.StatusBadRequest, "state: want one of %v", of)
}

// A reply is what a request that succeeds is answered.
type reply struct {
	status   int // 0: 200
	body     any // JSON; nil: nothing
	raw      []byte
	isRaw    bool
	location string
	stream   func(w http.ResponseWriter) // writes the body, and its headers
}

// A Taker is a http.ResponseWriter within the process, to which a value that a GET is answered with can be handed as it is, and
// not as JSON. It may keep the value.
type Taker interface {
	http.ResponseWriter
	// Take reports whether it has taken the value. Nothing is written then.
	Take(body any) bool
}

func (rep *reply) write(w http.ResponseWriter, h *http.Request) {
	if rep.location != "" {
		w.Header().Set("Location", rep.location)
	}
	if rep.status == 0 {
		rep.status = http.StatusOK
	}
	switch {
	case rep.stream != nil:
		rep.stream(w)
	case rep.isRaw:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment") // no page of ours: nobody knows what is in it
		w.Header().Set("Content-Length", strconv.Itoa(len(rep.raw)))
		w.WriteHeader(rep.status)
		w.Write(rep.raw)
	case rep.body == nil:
		w.WriteHeader(rep.status)
	case h.Method == http.MethodGet || h.Method == http.MethodHead:
		if t, ok := w.(Taker); ok && t.Take(rep.body) {
			return
		}
		writeTagged(w, h, rep.body)
	default:
		writeJSON(w, "application/json", rep.status, rep.body)
	}
}

// tagSeed makes the tags of this process differ from those of another.
var tagSeed = maphash.MakeSeed()

// writeTagged answers with a value, or 304 if the client has just that already.
func writeTagged(w http.ResponseWriter, h *http.Request, body any) {
	text := jsonOf(body)
	tag := fmt.Sprintf(`"%x"`, maphash.Bytes(tagSeed, text))
	w.Header().Set("ETag", tag)
	if isAmong(tag, h.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// isAmong reports whether a tag is among those of headers, as RFC 9110 compares them weakly.
func isAmong(tag string, headers []string) bool {
	for one := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, kind string, status int, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(jsonOf(body)) // #nosec G705 -- JSON with a content type that says so
}

// jsonOf returns a value in a line of JSON.
func jsonOf(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be JSON: %v", body, err))
	}
	return append(text, '\n')
}
