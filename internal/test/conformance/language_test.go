package conformance

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, line string
		want          bool
	}{
		{"INSERTED 1", "INSERTED 1", true},
		{"INSERTED 1", "INSERTED 12", false},
		{"", "", true},
		{"*", "", true},
		{"*", "anything", true},
		{"a*b*c", "a--b--c", true},
		{"a*b*c", "a--c--b", false},
		{"a*a", "a", false},
		{"*b", "ab", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{`\x00\t\r\n\\`, "\x00\t\r\n\\", true},
	} {
		if got, err := matches(c.pattern, []byte(c.line)); err != nil || got != c.want {
			t.Errorf("matches(%q, %q) = %t, %v", c.pattern, c.line, got, err)
		}
	}
	for _, bad := range []string{`\`, `\q`, `\x`, `\x1`, `\xzz`} {
		if _, err := matches(bad, nil); err == nil {
			t.Errorf("matches(%q) accepts an unknown escape", bad)
		}
	}
}

// FuzzEscape checks that escaped data is unescaped to the same data.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "two words ", " ", "(nothing)", "OK list", "*\\*", "é\xff\x00\r\n\t", "\u2028"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := escape(data)
		if same, err := matches(text, data); err != nil || !same {
			t.Errorf("%q is escaped as %s, which does not match it: %v", data, text, err)
		}
		if back, err := unescape(text); err != nil || string(back) != string(data) {
			t.Errorf("%q is escaped as %s, which is unescaped as %q, %v", data, text, back, err)
		}
		tr, err := Parse("x-y", "# about\n"+textLine("A", data)+"\n")
		if err != nil || tr.steps[0].verb != expectLine {
			t.Errorf("%q is escaped as %s, which is not a reply: %v", data, text, err)
		}
	})
}

func TestPieces(t *testing.T) {
	got, err := parsePieces(`"ab"*2 "\r\n"  "x" ""*5 "y"*0`)
	if err != nil || string(got) != "abab\r\nx" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{`ab`, `"ab`, `"a"*`, `"a"*x`, `"a"*-1`, `"a" b`} {
		if _, err := parsePieces(bad); err == nil {
			t.Errorf("parsePieces(%s) succeeds", bad)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"A> x", "no comment at the top"},
		{"# about", "nothing happens"},
		{"# about\nA> x ", "x-y.txt:2: blank at the end"},
		{"# about\nfoo", "x-y.txt:2: not a line"},
		{"# about\nA> x\\q", "unknown escape"},
		{"# about\nwait long", "invalid duration"},
		{"# about\nsignal HUP", "unknown signal"},
		{"# about\n  - x", "belongs below"},
		{"# about\nA< OK list\n  x", "not an entry"},
		{"# about\nA< OK dict\n  - x", "not an entry"},
		{"# about\nours A< x", "differs:"},
		{"# about\ndiffers: by taste\nA< x", "differs:"},
		{"# about\nsince 1.10\nA< x", "only 1.13"},
	} {
		if _, err := Parse("x-y", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want it to contain %q", c.text, err, c.want)
		}
	}
}

// A script is a server that answers each line with the next text of the script.
type script []string

func (s script) Start(tb testing.TB, _ []string) Instance { return s }
func (s script) Drain() error                             { return nil }
func (s script) Dial() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		in := bufio.NewScanner(server)
		for _, text := range s {
			if !in.Scan() {
				return
			}
			server.Write([]byte(text))
		}
		in.Scan()
	}()
	return client, nil
}

// TestPlayer checks that the player detects wrong replies.
func TestPlayer(t *testing.T) {
	for _, c := range []struct {
		name   string
		server script
		talk   string
		got    string // the expected report, or "" for success
		bare   bool   // the dialect has bare strings
	}{
		{"right", script{"INSERTED 1\r\n"}, "A> put\nA< INSERTED 1", "", false},
		{"wrong line", script{"INSERTED 2\r\n"}, "A> put\nA< INSERTED 1", "got  A< INSERTED 2", false},
		{"wrong end of line", script{"INSERTED 1\n"}, "A> put\nA< INSERTED 1", `got  A<< "INSERTED 1\n"`, false},
		{"no answer", script{""}, "A> put\nA< INSERTED 1", "got  A< (nothing)", false},
		{"closed", script{}, "A> put\nA> put\nA< X", "closed", false},
		{"more than asked for", script{"A\r\nB\r\n"}, "A> x\nA< A", "received more", false},
		{"something instead of nothing", script{"A\r\n"}, "A> x\nA< (nothing)", "got  A< A", false},
		{"still open", script{""}, "A> x\nA< (closed)", "got  A< (nothing)", false},
		{"raw", script{"abc"}, "A> x\nA<< \"abc\"", "", false},
		{"raw differs", script{"abd"}, "A> x\nA<< \"abc\"", `got  A<< "abd"`, false},
		{"list", script{"OK 14\r\n---\n- default\n\r\n"}, "A> x\nA< OK list\n  - default", "", false},
		{"list differs", script{"OK 14\r\n---\n- default\n\r\n"}, "A> x\nA< OK list\n  - a", "- default", false},
		{"length is wrong", script{"OK 13\r\n---\n- default\n\r\n"}, "A> x\nA< OK list\n  - default", "OK 13", false},
		{"named keys", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict\n  b: 2", "", false},
		{"value differs", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict\n  b: 1", "b: 2", false},
		{"key is missing", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict\n  c: 1", "differs", false},
		{"all keys in another order", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict all\n  b: *\n  a: *", "a: 1", false},
		{"all keys", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict all\n  a: 1\n  b: 2", "", false},
		{"more keys", script{"OK 14\r\n---\na: 1\nb: 2\n\r\n"}, "A> x\nA< OK dict all\n  a: 1", "b: 2", false},
		{"bare strings", script{"OK 12\r\n---\nname: a\n\r\n"}, "A> x\nA< OK dict all\n  name: \"a\"", "", true},
		{"bare strings of a new server", script{"OK 12\r\n---\nname: a\n\r\n"}, "A> x\nA< OK dict all\n  name: \"a\"", "name: a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := Parse("x-y", "# about\n"+c.talk)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				err := tr.converse(c.server, Dialect{V112: c.bare})
				switch {
				case c.got == "" && err != nil:
					t.Error(err)
				case c.got != "" && (err == nil || !strings.Contains(err.Error(), c.got)):
					t.Errorf("error %v, want it to contain %q", err, c.got)
				}
			})
		})
	}
}

func TestDialectPlays(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		want []bool // whether a step for both, ours or real is played
	}{{Beanpole, []bool{true, true, false}}, {Beanstalkd113, []bool{true, false, true}}} {
		got := []bool{c.d.plays(both), c.d.plays(ours), c.d.plays(real)}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v plays %t, want %t", c.d, got, c.want)
		}
	}
}
