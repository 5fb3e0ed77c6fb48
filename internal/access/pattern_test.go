package access

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		glob, tube string
		want       bool
	}{
		{"mail", "mail", true}, {"mail", "mails", false}, {"mail", "mai", false}, {"", "", true}, {"*", "", true}, {"*", "any", true},
		{"mail-*", "mail-", true}, {"mail-*", "mail", false}, {"*-dead", "a-dead-dead", true}, {"*-dead", "a-dead-", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXcYb", false},
		{"m?il", "mail", true}, {"m?il", "mil", false}, {"?", "", false}, {"*?", "x", true}, {"?*", "", false}, {"*a?c", "aacabc", true},
		// If a glob is within a pattern, the pattern matches each name that the glob
		// matches.
		{"*", "mail-*", true}, {"mail-*", "mail-x*", true}, {"mail-*", "mail-?", true}, {"mail-*", "mail*", false}, {"mail-?", "mail-*", false}, {"m?il", "m?il", true}, {"mail", "mai?", false},
	} {
		if got := Match(test.glob, test.tube); got != test.want {
			t.Errorf("%s matches %s: %v", test.glob, test.tube, got)
		}
	}
}

// FuzzMatch compares Match with a matcher that tries every length for each *.
func FuzzMatch(f *testing.F) {
	for _, glob := range []string{"", "*", "a*b*c", "*a?c", "m?il-*", "**?", "*ab?ab*b"} {
		f.Add(glob, "aXbYbZc")
		f.Add(glob, "mail-*")
		f.Add(glob, "ababab")
	}
	var match func(glob, tube string) bool
	match = func(glob, tube string) bool {
		switch {
		case glob == "":
			return tube == ""
		case glob[0] == '*':
			return match(glob[1:], tube) || tube != "" && match(glob, tube[1:])
		}
		return tube != "" && (glob[0] == tube[0] || glob[0] == '?' && tube[0] != '*') && match(glob[1:], tube[1:])
	}
	f.Fuzz(func(t *testing.T, glob, tube string) {
		if len(glob) > 12 || len(tube) > 16 {
			return
		}
		if got, want := Match(glob, tube), match(glob, tube); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", glob, tube, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	tube, part := strings.Repeat("a", 200), strings.Repeat("a", 90)
	for name, glob := range map[string]string{
		"prefix": "mail-*", "one part": "*" + part + "b*", "many parts": "*" + strings.Repeat("a*", 90) + "b", "question mark": "*?" + part + "b*",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Match(glob, tube)
			}
		})
	}
}
