package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	durations "github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// errUnknown says that nobody knows who asks.
var errUnknown = errors.New("console: the client is not known")

// isStatus reports whether an error is a problem with a status.
func isStatus(err error, status int) bool { return err != nil && admin.StatusOf(err) == status }

// problemf returns a problem of the console's own.
var problemf = admin.Problemf

// tubesAge is how old a list of tubes may be: a page is made once a second, and some have several.
const tubesAge = 900 * time.Millisecond

// api asks the server that the page is about, on behalf of whoever asks for the page.
func (r *request) api() *admin.Client { return r.apiOf(r.site) }

func (r *request) apiOf(s *site) *admin.Client {
	server := ""
	if s.other != nil {
		server = s.Name
	}
	return r.console.opt.Open(access.Caller{Identity: r.who, Address: r.RemoteAddr, Via: "console", MaxAge: tubesAge, Idle: r.idle}, server)
}

// bindPath reads what the path of an operation names from texts of a form or a URL, by their names.
func bindPath[In any](text func(name string) string) (*In, error) {
	in := new(In)
	return in, wrong(op.PlanOf(reflect.TypeFor[In]()).Path(in, text))
}

// wrong makes a problem of a mistake in what was typed.
func wrong(err error) error {
	if m, ok := errors.AsType[*op.Mistake](err); ok {
		return problemf(m.Status, "%s", m.Detail)
	}
	return err
}

// withQuery sets parameters of a path; those that are empty are left out.
func withQuery(path string, pairs ...string) string {
	path, query, _ := strings.Cut(path, "?")
	v, _ := url.ParseQuery(query) // as far as it is one
	for pair := range slices.Chunk(pairs, 2) {
		if name, value := pair[0], pair[1]; value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// curl returns the command that does an operation with an input, or nil, and with more behind it; empty: the server has no API.
func (r *request) curl(route string, in any, more ...string) string {
	origin := "http://" + r.Host
	if r.TLS != nil {
		origin = "https://" + r.Host
	}
	if other := r.site.other; other != nil {
		if origin = other.URL; origin == "" {
			return ""
		}
	}
	method, path, _ := strings.Cut(route, " ")
	var body io.Reader
	if in != nil {
		path, body, _ = op.PlanOf(reflect.TypeOf(in).Elem()).Request(in, path)
	}
	text := "curl -s"
	if method != http.MethodGet && (method != http.MethodPost || body == nil) {
		text += " -X " + method
	}
	text += " " + shellQuote(origin+admin.Prefix+path)
	if body != nil {
		content, _ := io.ReadAll(body)
		text += " -H 'Content-Type: application/json' -d " + shellQuote(string(content))
	}
	return text + strings.Join(more, "")
}

// members are fields of a form as members of JSON: a number if it is one. What is no number stays as it is, so that the API says so, and what is empty is
// left out.
func members(v url.Values, names ...string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	for _, name := range names {
		text := strings.TrimSpace(v.Get(name))
		if text == "" {
			continue
		}
		if slices.Contains(durationFields, name) {
			text = inSeconds(text)
		}
		if _, err := strconv.ParseUint(text, 10, 64); err == nil && !slices.Contains(textFields, name) {
			all[name] = json.RawMessage(text)
		} else {
			all[name] = quoted(text)
		}
	}
	return all
}

// durationFields are those that are seconds, or a number with a unit.
var durationFields = []string{"seconds", "delay", "ttr"}

// untilResumed is how long the longest pause lasts: longer than anybody waits.
const untilResumed = 1<<32 - 1

// unitWords are the units of durations as people write them.
var unitWords = regexp.MustCompile(`([smhd])(ec(ond)?s?|in(ute)?s?|ours?|ays?)`)

// shortUnits writes "10 min" as the package duration reads it: 10m.
func shortUnits(text string) string {
	return unitWords.ReplaceAllString(strings.ReplaceAll(strings.ToLower(text), " ", ""), "$1")
}

// inSeconds returns as a number what was typed as "10 min", "1h" or "until resumed". What is neither stays, so that the API says what it wants.
func inSeconds(text string) string {
	if strings.EqualFold(text, "until resumed") {
		return strconv.Itoa(untilResumed)
	}
	if d, err := durations.Parse(shortUnits(text)); err == nil && d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10)
	}
	return text
}

// textFields are those that are texts, also if they look like numbers.
var textFields = []string{"to", "state", "tube"}

func quoted(text string) json.RawMessage {
	literal, _ := json.Marshal(text) // a text has one
	return literal
}
