package decode

import "strings"

// maxClass is the maximum length of a class of errors, in bytes.
const maxClass = 100

// ErrorClass returns the class of an error from its text, or an empty string: the part
// before ": " or the whole text, if that is a single name with a capital, such as
// "SMTPAuthenticationError", "Net::ReadTimeout" or "App\\Exceptions\\Declined".
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
