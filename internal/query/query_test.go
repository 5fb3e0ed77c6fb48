package query

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{`user.id:17 state:buried age>10m tries>=3 "some text" /re g/ tube:mail-*`, `in mail-*; buried; where user.id is 17; with age > 10m; with tries ≥ 3; that contain “some text”; that match re g`},
		{"connection refused", "that contain “connection”; that contain “refused”"},
		{"/user/id = 17", "where /user/id is 17"}, // earlier versions accepted this form
		{`/user/id="a b"`, `where /user/id is a b`},
		{"/user/id:17 x", "where /user/id is 17; that contain “x”"},
		{"/user/id", "that have /user/id"},
		{"/user/id x", "that have /user/id; that contain “x”"},
		{`/a\/ b/ c`, `that match a\/ b; that contain “c”`},
		{"user.id:*", "that have user.id"},
		{"amount>100 amount<=1e3", "where amount > 100; where amount ≤ 1e3"},
		{"state:ready,delayed tube:a,b tube:c", "in a or b or c; ready or delayed"},
		{"id:17 pri<1024 size>1.5k left<=2h", "with id is 17; with pri < 1024; with size > 1.5k; with left ≤ 2h"},
		{`class:"App\\Jobs\\Mail"`, `where class is App\Jobs\Mail`},
		{"class:*Mail held>10m touches>=3", "where class is *Mail; with held > 10m; with touches ≥ 3"},
		{"not state:buried a", "not buried; that contain “a”"},
		{"a not b or not not c or tube:x d", "that contain “a”; not that contain “b” or that contain “c” or in x; that contain “d”"},
		{"priority<10 or age>1h or", "with priority < 10 or with age > 1h; that contain “or”"},
		{`"not" "or" x or`, "that contain “not”; that contain “or”; that contain “x”; that contain “or”"},
		{"a or state:busy", `! state: unknown state "busy"; want one of ready, reserved, delayed, buried`},
		// These queries contain words.
		{`App\Jobs\Mail`, `that contain “App\Jobs\Mail”`},
		{"App::Mail http://host/a 12:30 a=b a->b x: > {\"a\":1}", "that contain “App::Mail”; that contain “http://host/a”; that contain “12:30”; that contain “a=b”; that contain “a->b”; that contain “x:”; that contain “>”; that contain “{\"a\":1}”"},
		{`"say \"hi\" \n"`, `that contain “say "hi" \n”`},
		// These queries contain mistakes.
		{`"open`, `! the quote before "open" does not end`},
		{`user.name:"open`, `! the quote before "open" does not end`},
		{"state:busy", `! state: unknown state "busy"; want one of ready, reserved, delayed, buried`},
		{"age>soon", `! age: "soon" is not a time; want a number with s, m, h or d, such as 10m`},
		{"size>big", `! size: "big" is not a size; want a number, with or without k, M or G`},
		{"tries>x", `! tries: "x" is not a whole number`},
		{strings.Repeat("a ", 21), "! want 20 parts at most"},
		{strings.Repeat("a", 3000), "! want 2048 bytes at most"},
	} {
		q, err := Parse(test.text)
		got := ""
		if err != nil {
			got = "! " + err.Error()
		} else {
			got = strings.Join(q.Words(), "; ")
		}
		if got != test.want {
			t.Errorf("%s:\n%s, want\n%s", test.text, got, test.want)
		}
	}
}

// FuzzParse checks that the parser does not panic or hang, and that quoted text is one
// word.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", `user.id:17 state:buried age>10m tries>=3 "some text" /re g/ tube:mail-*`, "/user/id = 17", "/a/ /b", `x:"a\"b\\ y"`, "size>1.5k id:1", "a=b c->d", "http://h", "not a or class:b or not not /p state:ready",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := Parse(text); err == nil {
			q.Words()
		}
		q, err := Parse("not " + Quote(text) + " or x")
		if len(text) < MaxLength/2-9 && (err != nil || q.Parts[0][0].Value != text) {
			t.Errorf("%q: %+v, %v", text, q, err)
		}
	})
}
