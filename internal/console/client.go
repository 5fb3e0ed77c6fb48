package console

import (
	"encoding/json"
	"errors"
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

// errUnknown means that the client is not authenticated.
var errUnknown = errors.New("console: the client is not authenticated")

// isStatus reports whether an error is a problem with a status.
func isStatus(err error, status int) bool { return err != nil && admin.StatusOf(err) == status }

// problemf returns a problem found by the console itself.
var problemf = admin.Problemf

// tubesAge is the maximum age of a list of tubes. A live page is rendered once a second,
// and some pages have several lists.
const tubesAge = 900 * time.Millisecond

// api returns a client of the page's server, with the identity of the user.
func (r *request) api() *admin.Client { return r.apiOf(r.site) }

func (r *request) apiOf(s *site) *admin.Client {
	server := ""
	if s.other != nil {
		server = s.Name
	}
	return r.console.opt.Open(access.Caller{Identity: r.who, Address: r.RemoteAddr, Via: "console", MaxAge: tubesAge}, server)
}

// bindPath reads the path parameters of an operation from a form or a URL, by their
// names.
func bindPath[In any](text func(name string) string) (*In, error) {
	in := new(In)
	return in, wrong(op.PlanOf(reflect.TypeFor[In]()).Path(in, text))
}

// wrong converts a mistake in the input to a problem.
func wrong(err error) error {
	if m, ok := errors.AsType[*op.BindError](err); ok {
		return problemf(m.Status, "%s", m.Detail)
	}
	return err
}

// withQuery sets parameters of a path. Empty parameters are left out.
func withQuery(path string, pairs ...string) string {
	path, query, _ := strings.Cut(path, "?")
	v, _ := url.ParseQuery(query) // the valid part of the query
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

// members returns fields of a form as JSON members. Numbers become JSON numbers. Invalid
// values stay unchanged, so that the API reports the error. Empty fields are left out.
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

// durationFields are the fields with seconds, or with a number and a unit.
var durationFields = []string{"seconds", "delay", "ttr"}

// untilResumed is the longest pause in seconds: longer than any user waits.
const untilResumed int64 = 1<<32 - 1

var clockTime = regexp.MustCompile(`^(?:until )?([0-9]{1,2}:[0-9]{2})(?: ?utc)?$`)

// inSeconds converts texts such as "10m", "until resumed", or "9:00" for the next 09:00
// in UTC, to seconds. Other texts stay unchanged, so that the API reports the
// error.
func inSeconds(text string) string {
	lower := strings.ToLower(text)
	if lower == "until resumed" {
		return strconv.FormatInt(untilResumed, 10)
	}
	if m := clockTime.FindStringSubmatch(lower); m != nil {
		if left, err := durations.Until(m[1], time.Now()); err == nil {
			return strconv.FormatInt(int64((left+time.Second-1)/time.Second), 10)
		}
	}
	if d, err := durations.Parse(strings.ReplaceAll(lower, " ", "")); err == nil && d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10)
	}
	return text
}

// pausedUntil returns the end of a pause that starts now, for a note. It is empty if the
// text is not a time.
func pausedUntil(text string) string {
	n, err := strconv.ParseInt(inSeconds(strings.TrimSpace(text)), 10, 64)
	switch {
	case err != nil:
		return ""
	case n == untilResumed:
		return " until resumed"
	}
	return time.Now().UTC().Add(time.Duration(n) * time.Second).Format(" until 2006-01-02 15:04 UTC")
}

// textFields contains the fields whose values are always texts, even if they look like
// numbers.
var textFields = []string{"to", "state", "tube"}

func quoted(text string) json.RawMessage {
	literal, _ := json.Marshal(text) // every text has a literal
	return literal
}
