package access

import "testing"

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		glob, tube string
		want       bool
	}{
		{"mail", "mail", true}, {"mail", "mails", false}, {"mail", "mai", false}, {"", "", true}, {"*", "", true}, {"*", "any", true},
		{"mail-*", "mail-", true}, {"mail-*", "mail", false}, {"*-dead", "a-dead-dead", true}, {"*-dead", "a-dead-", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXcYb", false},
		{"m?il", "mail", true}, {"m?il", "mil", false}, {"?", "", false}, {"*?", "x", true}, {"?*", "", false}, {"*a?c", "aacabc", true},
		// A glob that is matched: each of its names is.
		{"*", "mail-*", true}, {"mail-*", "mail-x*", true}, {"mail-*", "mail-?", true}, {"mail-*", "mail*", false}, {"mail-?", "mail-*", false}, {"m?il", "m?il", true}, {"mail", "mai?", false},
	} {
		if got := Match(test.glob, test.tube); got != test.want {
			t.Errorf("%s matches %s: %v", test.glob, test.tube, got)
		}
	}
}
