package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxClass is the maximum length of a class of errors, in bytes.
const maxClass = 100

// ErrorClass returns the class of an error from its text, or an empty string. The class
// is the part before ": ", or else the whole text, if that is a single name with a
// capital, such as "SMTPAuthenticationError", "Net::ReadTimeout" or
// "App\\Exceptions\\Declined".
func ErrorClass(reason string) string {
	class, _, _ := strings.Cut(reason, ": ")
	letters, capitals := 0, 0
	for _, r := range class {
		switch {
		case r >= 'A' && r <= 'Z':
			letters, capitals = letters+1, capitals+1
		case r >= 'a' && r <= 'z':
			letters++
		case r >= '0' && r <= '9' && letters > 0, strings.ContainsRune("._:\\/-", r) && letters > 0:
		default:
			return ""
		}
	}
	if capitals == 0 || letters < 2 || len(class) > maxClass {
		return ""
	}
	return class
}

// errorNames contains the member names of an error's class and message in bodies.
var errorNames = [][2]string{
	{"error_class", "error_message"},       // Sidekiq
	{"exceptionClass", "exceptionMessage"}, // Symfony
	{"exc_type", "exc_message"},            // Celery
	{"exception", "exception"},             // Laravel: a single member with both, before the stack
}

// maxReason is the maximum length of a reason, in characters.
const maxReason = 199

// Reason returns the error in a body, as "class: message" in one line, or an empty
// string. It does not decode compressed data or base64.
func Reason(body []byte) string {
	names := func(n [2]string) bool { return bytes.Contains(body, []byte(n[0])) }
	if len(body) > maxDescribed || !slices.ContainsFunc(errorNames, names) {
		return ""
	}
	text, ok := opened(body, 0, newBudget())
	var data any
	if !ok || json.Unmarshal(text, &data) != nil {
		return ""
	}
	return Line(reasonIn(data), maxReason)
}

// reasonIn searches the objects in a value for the class and the message of an error.
func reasonIn(data any) string {
	switch data := data.(type) {
	case map[string]any:
		for _, n := range errorNames {
			class, _ := data[n[0]].(string)
			message := data[n[1]]
			if list, ok := message.([]any); ok && len(list) > 0 {
				message = list[0]
			}
			text, _ := message.(string)
			text, _, _ = strings.Cut(text, "\n")
			switch {
			case class == "":
			case n[0] == n[1] || text == "":
				return cmp.Or(text, class)
			default:
				return class + ": " + text
			}
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if reason := reasonIn(data[key]); reason != "" {
				return reason
			}
		}
	case []any:
		for _, one := range slices.Backward(data) { // the last stamp of Symfony is the last error
			if reason := reasonIn(one); reason != "" {
				return reason
			}
		}
	}
	return ""
}
