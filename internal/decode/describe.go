package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

const (
	maxDescribed = 64 << 10 // maximum size of a body to describe
	maxFields    = 40
	maxValue     = 80 // in characters
)

// A Field is a value in a body with its path, for example user.id. The path is empty for
// an element of an array.
type Field struct{ Path, Value string }

// Describe returns the attributes that distinguish a job: the class of Laravel, Active
// Job, Symfony or Sidekiq, or the task of Celery, and its arguments. For an unknown
// format, the fields are the fields of the structure, or the text.
func Describe(body []byte) (kind string, fields []Field) {
	kind, arguments, ok := classOf(body)
	if !ok {
		return "", nil
	}
	return kind, appendFields(nil, "", arguments)
}

// Class returns the class of a job, or an empty string. It takes half the time of
// Describe.
func Class(body []byte) string {
	kind, _, _ := classOf(body)
	return kind
}

// classOf returns the class of a job and its arguments. ok is false for a body that is
// too large or has no structure.
func classOf(body []byte) (kind string, arguments json.RawMessage, ok bool) {
	if len(body) > maxDescribed {
		return "", nil, false
	}
	text, ok := opened(body, 0, newBudget())
	if !ok || len(text) > Limit {
		return "", nil, false
	}
	kind, arguments = describe(bytes.TrimSpace(text))
	return Visible(kind), arguments, true
}

// Summary returns the class of a job, and its arguments or its text, in one line of at
// most n characters. The line is empty if the body is too large, or is not text.
func Summary(body []byte, n int) (class, line string) {
	if len(body) > maxDescribed {
		return "", ""
	}
	class, fields := Describe(body)
	if text, ok := Text(body); class == "" && len(fields) == 0 && ok {
		line = text
	}
	return class, Line(cmp.Or(Joined(fields), line), n)
}

// Joined returns fields as a text.
func Joined(fields []Field) string {
	var all []string
	for _, f := range fields {
		all = append(all, strings.TrimPrefix(f.Path+": "+f.Value, ": "))
	}
	return strings.Join(all, ", ")
}

// Line returns the first n characters of a text, with spaces in place of unprintable
// characters.
func Line(text string, n int) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, text[:min(len(text), 4*n)])
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// Text returns a body as text, decoded if necessary. ok is false if the body is not text.
func Text(body []byte) (string, bool) {
	inner, _ := unpackAll(body, Limit, newBudget())
	return string(inner[:min(len(inner), Limit)]), utf8.Valid(inner)
}

// envelope is the class in which Symfony wraps messages.
const envelope = `Symfony\Component\Messenger\Envelope`

// describe returns the class of a job, and the part of its body with the arguments.
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

// argumentsOf returns the arguments in the envelope of a framework, or all members except
// the name.
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

// callOf returns the arguments of a call. Named arguments come last.
func callOf(list, named json.RawMessage) json.RawMessage {
	if len(objectOf(named)) == 0 {
		return list
	}
	if len(elementsOf(list)) == 0 {
		return named
	}
	return slices.Concat(list[:len(list)-1], []byte{','}, named, []byte{']'})
}

// ofTheQueue matches properties that Laravel adds to every job, and type markers of other
// frameworks.
var ofTheQueue = regexp.MustCompile(`^(@class|connection|queue|chain(ed|Connection|Queue|CatchCallbacks)|delay|afterCommit|middleware|job|tries|timeout|maxExceptions|backoff|failOnTimeout|shouldBeEncrypted|messageGroup|deduplicator|_aj_\w+|relations|collectionClass)$`)

// appendFields appends the values in a JSON text with their paths.
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

// isFlat reports whether an array contains only scalars.
func isFlat(text json.RawMessage) bool {
	return len(text) <= 2 || text[0] == '[' && !strings.ContainsAny(string(text[1:]), "{[")
}

var blanks = strings.NewReplacer("\n", " ", "\t", " ")

// shown returns the text of a JSON value for a row. Strings have quotes only if they look
// like another type.
func shown(text json.RawMessage) string {
	var s string
	if json.Unmarshal(text, &s) != nil || s == "" || strings.ContainsAny(s[:1]+s[len(s)-1:], " {[\"") || json.Valid([]byte(s)) {
		s = string(text)
	}
	s = Visible(blanks.Replace(s))
	if runes := []rune(s); len(runes) > maxValue {
		return string(runes[:maxValue-1]) + "…"
	}
	return s
}

// as decodes JSON. It returns the zero value for another type.
func as[T any](text json.RawMessage) (v T) {
	if json.Unmarshal(text, &v) != nil {
		return *new(T)
	}
	return v
}

func objectOf(text json.RawMessage) map[string]json.RawMessage {
	return as[map[string]json.RawMessage](text)
}

// elementsOf returns the elements of an array.
func elementsOf(list json.RawMessage) []json.RawMessage { return as[[]json.RawMessage](list) }

func textOf(raw json.RawMessage) string { return short(as[string](raw)) }

// short returns s if it is a name that fits into a line, and otherwise "".
func short(s string) string {
	s, _, _ = strings.Cut(s, "@") // Laravel: Illuminate\Queue\CallQueuedHandler@call
	if len(s) > 120 || strings.ContainsAny(s, " \n") {
		return ""
	}
	return s
}

// fieldOf returns a string field of an object.
func fieldOf(object json.RawMessage, name string) string { return textOf(objectOf(object)[name]) }

// isWrapper reports whether a class only wraps another class, as in Active Job.
func isWrapper(class string) bool { return strings.HasSuffix(class, "::JobWrapper") }
