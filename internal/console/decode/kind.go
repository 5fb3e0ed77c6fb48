package decode

import (
	"cmp"
	"encoding/json"
	"strings"
)

// maxKind is how long a body is at most that is asked what it is.
const maxKind = 64 << 10

// Kind returns what a framework calls the job: the class of Laravel, Active Job, Symfony or
// Sidekiq, or the task of Celery. It is empty if the body does not say.
func Kind(body []byte) string {
	if len(body) > maxKind {
		return ""
	}
	return visible(kindOf(body, 0))
}

// envelope is the class in which Symfony sends a message.
const envelope = `Symfony\Component\Messenger\Envelope`

func kindOf(body []byte, depth int) string {
	text, ok := structureOf(body)
	var fields map[string]json.RawMessage
	if !ok || depth > maxInside || json.Unmarshal(text, &fields) != nil {
		return ""
	}
	if textOf(fields["@class"]) == envelope {
		return fieldOf(fields["message"], "@class")
	}
	for _, name := range []string{"displayName", "job_class", "wrapped", "class", "task", "job", "@class", "type"} {
		s := textOf(fields[name])
		if isWrapper(s) {
			s = jobClassOf(fields["args"])
		}
		if s != "" {
			return s
		}
	}
	if s := cmp.Or(fieldOf(fields["headers"], "task"), fieldOf(fields["headers"], "type")); s != "" { // Celery, Symfony
		return s
	}
	var inside string
	if json.Unmarshal(fields["body"], &inside) != nil {
		return ""
	}
	return kindOf([]byte(inside), depth+1)
}

// jobClassOf returns the class of an Active Job, which the first argument of its wrapper says.
func jobClassOf(args json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(args, &list) != nil || len(list) == 0 {
		return ""
	}
	return fieldOf(list[0], "job_class")
}

func textOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return short(s)
}

// short returns a name that fits in a line; what is none is nothing.
func short(s string) string {
	s, _, _ = strings.Cut(s, "@") // Laravel: Illuminate\Queue\CallQueuedHandler@call
	if len(s) > 120 || strings.ContainsAny(s, " \n") {
		return ""
	}
	return s
}

// fieldOf returns a text that is a field of an object.
func fieldOf(object json.RawMessage, name string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return ""
	}
	return textOf(fields[name])
}

// isWrapper reports whether a class only carries another one: that of an Active Job.
func isWrapper(class string) bool { return strings.HasSuffix(class, "::JobWrapper") }
