package decode

import (
	"encoding/json"
	"strings"
)

// maxKind is how long a body is at most that is asked what it is.
const maxKind = 64 << 10

// Kind returns what a framework calls the job: the class of Laravel, Active Job, Symfony or
// Sidekiq, or the task of Celery. It is empty if the body does not say.
func Kind(body []byte) string {
	if len(body) > maxKind || len(body) == 0 {
		return ""
	}
	if body[0] != '{' && body[0] != '[' {
		if inside, ok := fromBase64(body); ok && len(inside) > 0 && inside[0] == '{' {
			body = inside
		} else if text, ok := fromPHP(body); ok {
			body = text
		}
	}
	if body[0] != '{' || tooDeep(body) {
		return ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	for _, name := range []string{"displayName", "job_class", "wrapped", "class", "task", "job", "@class", "type"} {
		if s := textOf(fields[name]); s != "" {
			return s
		}
	}
	var headers struct {
		Task string `json:"task"` // Celery
		Type string `json:"type"` // Symfony
	}
	if json.Unmarshal(fields["headers"], &headers) == nil {
		return short(headers.Task + headers.Type)
	}
	return ""
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
