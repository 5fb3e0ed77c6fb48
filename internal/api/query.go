package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jsonscan"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// A search selects jobs.
type search struct {
	states []engine.State
	tubes  access.Pattern // nil for all tubes
	query  *query.Query   // nil if there is no query
	body   bodyMatch      // nil for all bodies
	choice [][]option     // one option of each list must match
}

// An option is a search with a single condition.
type option struct {
	not bool
	*search
}

// isAny reports whether the search matches all jobs of its states.
func (s *search) isAny() bool { return s.query == nil && s.body == nil }

// reads reports whether the search reads bodies.
func (s *search) reads() bool {
	return s.body != nil || s.query != nil && len(s.query.Reasons) > 0 || slices.ContainsFunc(s.choice, func(c []option) bool {
		return slices.ContainsFunc(c, func(o option) bool { return o.reads() })
	})
}

// matches reports whether a job matches.
func (s *search) matches(j *scannedJob, rd *reading) bool {
	if s.query != nil && !s.query.Fits(j.State.String(), func(name string) (int64, bool) { return numberOf(name, &j.JobStats) }) || s.tubes != nil && !s.tubes.Matches(j.Tube) {
		return false
	}
	if s.query != nil && len(s.query.Reasons) > 0 {
		reason := reasonOf(j)
		for _, pattern := range s.query.Reasons {
			if reason == "" || !access.Match(pattern, reason) {
				return false
			}
		}
	}
	for _, c := range s.choice {
		if !slices.ContainsFunc(c, func(o option) bool { return o.matches(j, rd) != o.not }) {
			return false
		}
	}
	return s.body == nil || s.body(j.body[:min(len(j.body), searchedBytes)], rd)
}

// numberOf returns an attribute of a job, or false if the job lacks it.
func numberOf(name string, st *engine.JobStats) (n int64, ok bool) {
	switch name {
	case "held", "touches":
		ok = st.State == engine.Reserved
	case "buried":
		f, _ := st.Failure()
		ok = st.State == engine.Buried && f.Buried > 0
	default:
		ok = true
	}
	return numbers[name](st), ok
}

// numbers are the attributes of a job that queries can compare.
var numbers = map[string]func(*engine.JobStats) int64{
	"id":       func(st *engine.JobStats) int64 { return int64(st.ID) },
	"pri":      func(st *engine.JobStats) int64 { return int64(st.Pri) },
	"priority": func(st *engine.JobStats) int64 { return int64(st.Pri) },
	"tries":    func(st *engine.JobStats) int64 { return int64(st.Reserves) },
	"timeouts": func(st *engine.JobStats) int64 { return int64(st.Timeouts) },
	"releases": func(st *engine.JobStats) int64 { return int64(st.Releases) },
	"buries":   func(st *engine.JobStats) int64 { return int64(st.Buries) },
	"kicks":    func(st *engine.JobStats) int64 { return int64(st.Kicks) },
	"size":     func(st *engine.JobStats) int64 { return int64(st.Size) },
	"age":      func(st *engine.JobStats) int64 { return st.Age },
	"left":     func(st *engine.JobStats) int64 { return st.TimeLeft },
	"delay":    func(st *engine.JobStats) int64 { return int64(st.Delay) },
	"ttr":      func(st *engine.JobStats) int64 { return int64(st.TTR) },
	"held":     func(st *engine.JobStats) int64 { return seconds(st.Held) },
	"touches":  func(st *engine.JobStats) int64 { return int64(st.Touches) },
	"buried": func(st *engine.JobStats) int64 {
		f, _ := st.Failure()
		return int64(time.Since(time.UnixMilli(f.Buried)) / time.Second)
	},
}

// jobSearch parses a search. All its conditions must hold.
func jobSearch(in *admin.Search) (*search, error) {
	s := &search{states: allStates}
	if in.State != "" {
		one, err := parseState(in.State, allStates...)
		if err != nil {
			return nil, err
		}
		s.states = []engine.State{one}
	}
	if in.Q == nil {
		return s, nil
	}
	return s, s.ask(*in.Q)
}

// ask adds the conditions of a query.
func (s *search) ask(text string) error {
	q, err := query.Parse(text)
	if err != nil {
		return badRequest("q: %v", err)
	}
	program := 0
	err = s.compile(q, &program)
	if len(q.States) > 0 {
		s.states = slices.DeleteFunc(slices.Clone(s.states), func(state engine.State) bool { return !slices.Contains(q.States, state.String()) })
	}
	return err
}

// compile sets the conditions of a query. It adds the size of its regular expressions to
// *program.
func (s *search) compile(q *query.Query, program *int) error {
	s.query, s.tubes = q, q.Tubes
	var bodies []bodyMatch
	for _, b := range q.Bodies {
		one, err := partMatch(&b, program)
		if err != nil {
			return err
		}
		bodies = append(bodies, one)
	}
	if len(bodies) > 0 {
		s.body = eachMatch(bodies)
	}
	for _, c := range q.Choices {
		options := make([]option, len(c))
		for i, o := range c {
			options[i] = option{o.Not, new(search)}
			if err := options[i].compile(o.Query, program); err != nil {
				return err
			}
		}
		s.choice = append(s.choice, options)
	}
	return nil
}

func partMatch(b *query.Body, program *int) (bodyMatch, error) {
	switch b.Kind {
	case query.Text:
		text := []byte(b.Text)
		return func(body []byte, _ *reading) bool { return bytes.Contains(body, text) }, nil
	case query.Regexp:
		return regexpMatch(b.Text, program)
	case query.Class:
		return classMatch(b.Value), nil
	case query.Pointer:
		path, err := pathOf(b.Text)
		return valueMatch(path, 0, b), err
	}
	return valueMatch(strings.Split(b.Text, "."), depthOfPath, b), nil
}

// classMatch returns a match for bodies that contain a class.
func classMatch(pattern string) bodyMatch {
	longest := ""
	for _, part := range strings.FieldsFunc(pattern, func(c rune) bool { return !isPlain(string(c)) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return func(body []byte, _ *reading) bool {
		if !mayHave(body, []string{longest}) {
			return false
		}
		class := decode.Class(body)
		return class != "" && access.Match(pattern, class)
	}
}

// eachMatch returns a match for bodies that all the given matches accept. Each match
// examines the body as stored, and its decoded form, which the console shows.
func eachMatch(all []bodyMatch) bodyMatch {
	return func(body []byte, rd *reading) bool {
		var opened []byte
		looked := false
		for _, match := range all {
			if match(body, rd) {
				continue
			}
			if !looked {
				opened, looked = decode.Open(body), true
			}
			if opened == nil || !rd.goOn() || !match(opened, rd) {
				return false
			}
		}
		return true
	}
}

// depthOfPath is the maximum depth at which a path can start in a body.
const depthOfPath = 12

// valueMatch returns a match for JSON with a value at a path that starts at the given
// depth or above.
func valueMatch(path []string, depth int, b *query.Body) bodyMatch {
	must := slices.DeleteFunc(slices.Clone(path), func(name string) bool { return !isPlain(name) || isIndex(name) })
	if b.Op == "=" && isPlain(b.Value) {
		must = append(must, b.Value)
	}
	test := func(value json.RawMessage) bool { return saysValue(value, b) }
	return func(body []byte, _ *reading) bool {
		return mayHave(body, must) && json.Valid(body) && hasValue(body, path, depth, test)
	}
}

// hasValue reports whether a value at a path passes a test.
func hasValue(text json.RawMessage, path []string, depth int, test func(json.RawMessage) bool) bool {
	if value, ok := valueAt(text, path); ok && test(value) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, value := range jsonscan.Members(bytes.TrimSpace(text)) {
		if value = bytes.TrimSpace(value); len(value) > 0 && (value[0] == '{' || value[0] == '[') && hasValue(value, path, depth-1, test) {
			return true
		}
	}
	return false
}

// saysValue reports whether a value, or an element of it if it is an array, meets a
// condition.
func saysValue(value json.RawMessage, b *query.Body) bool {
	value = bytes.TrimSpace(value)
	switch {
	case b.Op == "":
		return true
	case value[0] == '[':
		for _, element := range jsonscan.Members(value) {
			if element = bytes.TrimSpace(element); element[0] != '[' && saysValue(element, b) {
				return true
			}
		}
		return false
	case b.Op == "=":
		return saysJSON(value, b.Value)
	}
	a, err := strconv.ParseFloat(string(value), 64)
	want, wrong := strconv.ParseFloat(b.Value, 64)
	return err == nil && wrong == nil && query.Compare(a, b.Op, want)
}

// pathOf parses a JSON pointer (RFC 6901).
func pathOf(pointer string) ([]string, error) {
	if pointer != "" && pointer[0] != '/' {
		return nil, problemf(http.StatusBadRequest, "pointer: want a JSON pointer, such as /user/id")
	}
	path := strings.Split(pointer, "/")[1:]
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := range path {
		path[i] = unescape.Replace(path[i])
	}
	return path, nil
}
