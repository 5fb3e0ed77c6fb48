package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/op/jsonscan"
)

const (
	maxDescribed = 64 << 10 // how long a body is at most that is asked what it is
	maxFields    = 40
	maxValue     = 80 // characters
)

// A Field is a value in a body with the way to it: user.id. In a list the way is empty.
type Field struct{ Path, Value string }

// Describe returns what tells one job from another: what a framework calls it, the class of Laravel, Active Job, Symfony or
// Sidekiq, or the task of Celery, and its arguments. Of a body with another structure the fields are what is in it; of one
// without they are its text.
func Describe(body []byte) (kind string, fields []Field) {
	if len(body) > maxDescribed {
		return "", nil
	}
	text, ok := opened(body, 0, newBudget())
	if !ok || len(text) > Limit {
		return "", nil
	}
	kind, arguments := describe(bytes.TrimSpace(text))
	return visible(kind), appendFields(nil, "", arguments)
}

// Text returns a body as text, unpacked if it is packed; false: it is none.
func Text(body []byte) (string, bool) {
	inner, _ := unpackAll(body, Limit, newBudget())
	return string(inner[:min(len(inner), Limit)]), utf8.Valid(inner)
}

// envelope is the class in which Symfony sends a message.
const envelope = `Symfony\Component\Messenger\Envelope`

// describe returns the name of a job, and the part of its body that are its arguments.
func describe(text json.RawMessage) (kind string, arguments json.RawMessage) {
	fields := objectOf(text)
	if textOf(fields["@class"]) == envelope {
		return fieldOf(fields["message"], "@class"), fields["message"]
	}
	for _, name := range []string{"displayName", "job_class", "wrapped", "class", "task", "job", "@class", "type"} {
		s := textOf(fields[name])
		if isWrapper(s) || name == "wrapped" && s != "" {
			if args := elementsOf(fields["args"]); len(args) > 0 && objectOf(args[0]) != nil {
				return describe(args[0])
			}
		}
		if s != "" && !isWrapper(s) {
			return s, argumentsOf(fields, text, name)
		}
	}
	if s := cmp.Or(fieldOf(fields["headers"], "task"), fieldOf(fields["headers"], "type")); s != "" { // Celery, Symfony
		body := fields["body"]
		if list := elementsOf(body); fieldOf(fields["headers"], "task") != "" && len(list) == 3 {
			return s, callOf(list[0], list[1])
		}
		return s, body
	}
	if fields["headers"] != nil {
		if kind, arguments := describe(fields["body"]); kind != "" {
			return kind, arguments
		}
	}
	return "", text
}

// argumentsOf returns the arguments in the envelope of a framework, or all that it has besides the member with its name.
func argumentsOf(fields map[string]json.RawMessage, text json.RawMessage, name string) json.RawMessage {
	command := objectOf(fields["data"])["command"]
	switch {
	case len(objectOf(command)) > 0: // Laravel
		return command
	case name == "displayName" && fields["data"] != nil:
		return fields["data"]
	case fields["args"] != nil:
		return callOf(fields["args"], fields["kwargs"])
	case fields["arguments"] != nil:
		return fields["arguments"]
	}
	rest := []byte{'{'}
	for key, value := range jsonscan.Members(text) {
		if string(key) != `"`+name+`"` {
			rest = append(append(append(append(rest, key...), ':'), value...), ',')
		}
	}
	return append(rest[:max(1, len(rest)-1)], '}')
}

// callOf returns the arguments of a call, those with names at the end.
func callOf(list, named json.RawMessage) json.RawMessage {
	if len(objectOf(named)) == 0 {
		return list
	}
	if len(elementsOf(list)) == 0 {
		return named
	}
	return slices.Concat(list[:len(list)-1], []byte{','}, named, []byte{']'})
}

// ofTheQueue are properties that each job of Laravel has for the framework, and what others say of types.
var ofTheQueue = regexp.MustCompile(`^(@class|connection|queue|chain(ed|Connection|Queue|CatchCallbacks)|delay|afterCommit|middleware|job|tries|timeout|maxExceptions|backoff|failOnTimeout|shouldBeEncrypted|messageGroup|deduplicator|_aj_\w+|relations|collectionClass)$`)

// appendFields appends the values that some JSON has, each with the way to it.
func appendFields(all []Field, path string, text json.RawMessage) []Field {
	if len(all) >= maxFields {
		return all
	}
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || path != "" && isFlat(text) {
		return append(all, Field{path, shown(text)})
	}
	members := objectOf(text)
	class := textOf(members["@class"])
	if id := members["id"]; strings.HasSuffix(class, `\ModelIdentifier`) && id != nil {
		model := textOf(members["class"])
		return append(all, Field{path, model[strings.LastIndexByte(model, '\\')+1:] + " " + shown(id)})
	}
	if id := members["_aj_globalid"]; id != nil {
		return append(all, Field{path, shown(id)})
	}
	n, i := len(all), 0
	for key, value := range jsonscan.Members(text) {
		name := strings.Trim(shown(key), `"`)
		if key == nil && path != "" {
			name = strconv.Itoa(i)
		}
		i++
		if class != "" && path == "" && ofTheQueue.MatchString(name) || name == "@class" || strings.HasPrefix(name, "_aj_") {
			continue
		}
		all = appendFields(all, strings.TrimPrefix(path+"."+name, "."), value)
	}
	if len(all) == n && class != "" && path != "" {
		return append(all, Field{path, class})
	}
	return all
}

// isFlat reports whether a list has simple values only, or nothing is in it.
func isFlat(text json.RawMessage) bool {
	return len(text) <= 2 || text[0] == '[' && !strings.ContainsAny(string(text[1:]), "{[")
}

var blanks = strings.NewReplacer("\n", " ", "\t", " ")

// shown returns a value of JSON as it stands in a row: a text that cannot be taken for something else has no quotes.
func shown(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) != nil || s == "" || strings.ContainsAny(s[:1]+s[len(s)-1:], " {[\"") || json.Valid([]byte(s)) {
		s = string(text)
	}
	s = visible(blanks.Replace(s))
	if runes := []rune(s); len(runes) > maxValue {
		return string(runes[:maxValue-1]) + "…"
	}
	return s
}

// as reads some JSON; what is of another kind is nothing.
func as[T any](text json.RawMessage) (v T) {
	if json.Unmarshal(text, &v) != nil {
		return *new(T)
	}
	return v
}

func objectOf(text json.RawMessage) map[string]json.RawMessage {
	return as[map[string]json.RawMessage](text)
}

// elementsOf returns what is in a list.
func elementsOf(list json.RawMessage) []json.RawMessage { return as[[]json.RawMessage](list) }

func textOf(raw json.RawMessage) string { return short(as[string](raw)) }

// short returns a name that fits in a line; what is none is nothing.
func short(s string) string {
	s, _, _ = strings.Cut(s, "@") // Laravel: Illuminate\Queue\CallQueuedHandler@call
	if len(s) > 120 || strings.ContainsAny(s, " \n") {
		return ""
	}
	return s
}

// fieldOf returns a text that is a field of an object.
func fieldOf(object json.RawMessage, name string) string { return textOf(objectOf(object)[name]) }

// isWrapper reports whether a class only carries another one: that of an Active Job.
func isWrapper(class string) bool { return strings.HasSuffix(class, "::JobWrapper") }
