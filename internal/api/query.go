package api

import (
	"bytes"
	"encoding/json"
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
	parts  [][]test       // one test of each list must hold
}

// A test is a condition of a search.
type test struct {
	not   bool
	reads bool // whether holds examines the body
	holds func(j *candidate) bool
}

// A candidate is a job that a search examines.
type candidate struct {
	*scannedJob
	*reading
	opened   []byte // decoded body; nil if there is nothing to decode
	isOpened bool
}

// isAny reports whether the search matches all jobs of its states.
func (s *search) isAny() bool { return s.query == nil }

// reads reports whether the search reads bodies.
func (s *search) reads() bool { return slices.ContainsFunc(s.parts, readsBody) }

func readsBody(part []test) bool {
	return slices.ContainsFunc(part, func(t test) bool { return t.reads })
}

// matches reports whether a job matches.
func (s *search) matches(j *scannedJob, rd *reading) bool {
	if s.tubes != nil && !s.tubes.Matches(j.Tube) || !slices.Contains(s.states, j.State) {
		return false
	}
	c := &rd.job
	*c = candidate{scannedJob: j, reading: rd}
	for _, part := range s.parts {
		if !slices.ContainsFunc(part, func(t test) bool { return t.holds(c) != t.not }) {
			return false
		}
	}
	return true
}

// has reports whether a match accepts the body as stored, or its decoded form, which the
// console shows.
func (c *candidate) has(match bodyMatch) bool {
	body := c.body[:min(len(c.body), searchedBytes)]
	if match(body, c.reading) {
		return true
	}
	if !c.isOpened {
		c.opened, c.isOpened = decode.Open(body), true
	}
	return c.opened != nil && c.goOn() && match(c.opened, c.reading)
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
	s.query, s.tubes = q, q.Tubes
	if len(q.States) > 0 {
		s.states = slices.DeleteFunc(slices.Clone(s.states), func(state engine.State) bool { return !slices.Contains(q.States, state.String()) })
	}
	program := 0
	var last [][]test // tests of bodies, which take long
	for _, part := range q.Parts {
		tests := make([]test, len(part))
		for i := range part {
			if tests[i], err = testOf(&part[i], &program); err != nil {
				return err
			}
		}
		if readsBody(tests) {
			last = append(last, tests)
		} else {
			s.parts = append(s.parts, tests)
		}
	}
	s.parts = append(s.parts, last...)
	return nil
}

// testOf returns the test for a condition. It adds the size of its regular expression to
// *program.
func testOf(c *query.Condition, program *int) (t test, err error) {
	t = test{not: c.Not, reads: c.Kind >= query.Reason}
	var match bodyMatch
	switch c.Kind {
	case query.Tube:
		t.holds = func(j *candidate) bool { return access.Pattern(c.Any).Matches(j.Tube) }
	case query.State:
		t.holds = func(j *candidate) bool { return slices.Contains(c.Any, j.State.String()) }
	case query.Number:
		t.holds = func(j *candidate) bool {
			n, ok := numberOf(c.Name, &j.JobStats)
			return ok && query.Compare(n, c.Op, c.N)
		}
	case query.Reason:
		t.holds = func(j *candidate) bool {
			reason := reasonOf(j.scannedJob)
			return reason != "" && access.Match(c.Value, reason)
		}
	case query.Text:
		text := []byte(c.Value)
		match = func(body []byte, _ *reading) bool { return bytes.Contains(body, text) }
	case query.Regexp:
		match, err = regexpMatch(c.Value, program)
	case query.Class:
		match = classMatch(c.Value)
	case query.Pointer:
		match = valueMatch(pathOf(c.Name), 0, c)
	default:
		match = valueMatch(strings.Split(c.Name, "."), depthOfPath, c)
	}
	if match != nil {
		t.holds = func(j *candidate) bool { return j.has(match) }
	}
	return t, err
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

// depthOfPath is the maximum depth at which a path can start in a body.
const depthOfPath = 12

// valueMatch returns a match for JSON with a value at a path that starts at the given
// depth or above.
func valueMatch(path []string, depth int, c *query.Condition) bodyMatch {
	must := slices.DeleteFunc(slices.Clone(path), func(name string) bool { return !isPlain(name) || isIndex(name) })
	if c.Op == "=" && isPlain(c.Value) {
		must = append(must, c.Value)
	}
	test := func(value json.RawMessage) bool { return saysValue(value, c) }
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
func saysValue(value json.RawMessage, c *query.Condition) bool {
	value = bytes.TrimSpace(value)
	switch {
	case c.Op == "":
		return true
	case value[0] == '[':
		for _, element := range jsonscan.Members(value) {
			if element = bytes.TrimSpace(element); element[0] != '[' && saysValue(element, c) {
				return true
			}
		}
		return false
	case c.Op == "=":
		return saysJSON(value, c.Value)
	}
	a, err := strconv.ParseFloat(string(value), 64)
	want, wrong := strconv.ParseFloat(c.Value, 64)
	return err == nil && wrong == nil && query.Compare(a, c.Op, want)
}

// pathOf parses a JSON pointer (RFC 6901).
func pathOf(pointer string) []string {
	path := strings.Split(pointer, "/")[1:]
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := range path {
		path[i] = unescape.Replace(path[i])
	}
	return path
}
