package wal

import (
	"strings"
	"testing"
)

// A joiner joins only fragments of the same record.
func TestJoiner(t *testing.T) {
	a, b := fragment{Pos{1, 104}, 0, 6}, fragment{Pos{2, 104}, 0, 6}
	at := func(f fragment, from int) fragment { f.from = from; return f }
	type step struct {
		fragment
		part string
	}
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"two":                           {[]step{{a, "abc"}, {at(a, 3), "def"}}, "abcdef"},
		"three":                         {[]step{{a, "a"}, {at(a, 1), "bcde"}, {at(a, 5), "f"}}, "abcdef"},
		"a rest without a beginning":    {[]step{{at(a, 3), "def"}}, ""},
		"the rest of another record":    {[]step{{a, "abc"}, {at(b, 3), "DEF"}}, ""},
		"of the same place, and longer": {[]step{{a, "abc"}, {fragment{a.start, 3, 7}, "DEFG"}}, ""},
		"a part is missing":             {[]step{{a, "a"}, {at(a, 5), "f"}}, ""},
		"a rest that was written again": {[]step{{a, "a"}, {at(a, 1), "bc"}, {at(a, 1), "bcd"}, {at(a, 4), "ef"}}, "abcdef"},
		"a beginning without a rest":    {[]step{{a, "abc"}, {b, "ABC"}, {at(b, 3), "DEF"}}, "ABCDEF"},
		"the whole rest twice":          {[]step{{a, "abc"}, {at(a, 3), "def"}, {at(a, 3), "def"}}, "abcdef"},
	} {
		var j joiner
		var got []string
		for _, s := range test.steps {
			if start, payload := j.add(append(s.appendTo(nil), s.part...)); payload != nil {
				got = append(got, string(payload))
				if start != s.start {
					t.Errorf("%s: a record at %v, want %v", name, start, s.start)
				}
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
