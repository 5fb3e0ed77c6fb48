package conformance

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"
)

//go:embed testdata/*.txt
var files embed.FS

// A Transcript is a conversation with a server; see README.md.
type Transcript struct {
	Name    string   // name of the file without .txt: CATEGORY-SUBJECT
	About   string   // the sentences at the top of the file
	Args    []string // flags of the server
	Since   string   // "1.13" if older servers reply differently; otherwise ""
	Differs string   // the reason why beanpole intentionally differs from beanstalkd; "" if it does not

	steps []step
}

// side specifies the servers to which a step applies.
type side int

const (
	both side = iota
	ours
	real
)

// verb is the kind of a step.
type verb int

const (
	send       verb = iota // send data
	expectLine             // a line that matches pattern
	expectRaw              // exactly data
	expectDict             // OK and a dictionary
	expectList             // OK and a list
	expectNone             // no data arrives
	expectEnd              // the server has closed the connection
	open
	closeConn
	halfClose
	wait
	drain
)

// A step is one line of the conversation, or an answer with the indented
// lines below it.
type step struct {
	line    int    // line number in the file, from 1
	text    string // the lines of a reply, for errors
	side    side
	conn    string // empty for wait and drain
	verb    verb
	data    []byte        // for send and expectRaw
	pattern string        // for expectLine, still escaped
	entries []entry       // for expectDict and expectList
	all     bool          // for expectDict: whether these must be all entries, in this order
	pause   time.Duration // for wait
}

// indent separates the lines of a reply in an error.
const indent = "\n     "

// An entry is a key with its value, or a name in a list.
type entry struct{ key, value string }

// Transcripts returns all transcripts of this package, by name.
func Transcripts() ([]*Transcript, error) {
	names, err := fs.Glob(files, "testdata/*.txt")
	if err != nil {
		return nil, err
	}
	list := make([]*Transcript, len(names))
	for i, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if list[i], err = Parse(strings.TrimSuffix(path.Base(name), ".txt"), string(text)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

var (
	talkLine   = regexp.MustCompile(`^(?:(ours|real) )?([A-Z][A-Za-z0-9]*)(>>|>|<<|<)(?: (.*))?$`)
	actionLine = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*) (open|close|half-close)$`)
)

// Parse reads a transcript. An error contains the line number.
func Parse(name, text string) (*Transcript, error) {
	t := &Transcript{Name: name}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := t.parseLine(i+1, line); err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", name, i+1, err)
		}
	}
	return t, t.validate()
}

func (t *Transcript) parseLine(n int, line string) error {
	switch {
	case line != strings.TrimRight(line, " \t"):
		return fmt.Errorf(`blank at the end of the line; write \x20`)
	case line == "":
		return nil
	case line[0] == '#':
		if len(t.steps) == 0 {
			t.About += strings.TrimSpace(line[1:]) + "\n"
		}
		return nil
	case line[0] == ' ':
		return t.parseEntry(strings.TrimSpace(line))
	}
	if m := talkLine.FindStringSubmatch(line); m != nil {
		return t.parseTalk(n, m)
	}
	if m := actionLine.FindStringSubmatch(line); m != nil {
		verbs := map[string]verb{"open": open, "close": closeConn, "half-close": halfClose}
		t.steps = append(t.steps, step{line: n, conn: m[1], verb: verbs[m[2]]})
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "server":
		t.Args = append(t.Args, strings.Fields(rest)...)
	case "since":
		t.Since = rest
	case "differs:":
		t.Differs = rest
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err
		}
		t.steps = append(t.steps, step{line: n, verb: wait, pause: d})
	case "signal":
		if rest != "drain" {
			return fmt.Errorf("unknown signal %q", rest)
		}
		t.steps = append(t.steps, step{line: n, verb: drain})
	default:
		return fmt.Errorf("not a line of a transcript: %q", line)
	}
	return nil
}

// parseTalk parses a line of a connection; m is a match of talkLine.
func (t *Transcript) parseTalk(n int, m []string) error {
	s := step{line: n, text: m[0], conn: m[2]}
	switch m[1] {
	case "ours":
		s.side = ours
	case "real":
		s.side = real
	}
	var err error
	switch arrow, text := m[3], m[4]; arrow {
	case ">":
		s.verb = send
		s.data, err = unescape(text)
		s.data = append(s.data, "\r\n"...)
	case ">>":
		s.verb = send
		s.data, err = parsePieces(text)
	case "<<":
		s.verb = expectRaw
		s.data, err = parsePieces(text)
	case "<":
		switch text {
		case "(nothing)":
			s.verb = expectNone
		case "(closed)":
			s.verb = expectEnd
		case "OK list":
			s.verb = expectList
		case "OK dict", "OK dict all":
			s.verb, s.all = expectDict, text == "OK dict all"
		default:
			s.verb, s.pattern = expectLine, text
			_, err = matches(text, nil)
		}
	}
	t.steps = append(t.steps, s)
	return err
}

// parseEntry reads an indented line, which belongs to the previous step.
func (t *Transcript) parseEntry(text string) error {
	if len(t.steps) == 0 {
		return fmt.Errorf("an indented line belongs below an answer")
	}
	s := &t.steps[len(t.steps)-1]
	var e entry
	switch key, value, ok := strings.Cut(text, ": "); {
	case s.verb == expectList && strings.HasPrefix(text, "- "):
		e.key = text[2:]
	case s.verb == expectDict && ok:
		e = entry{key, value}
	default:
		return fmt.Errorf("%q is not an entry of the reply above", text)
	}
	s.entries = append(s.entries, e)
	s.text += indent + text
	return nil
}

func (t *Transcript) validate() error {
	tagged := false
	for _, s := range t.steps {
		tagged = tagged || s.side != both
	}
	switch {
	case t.About == "":
		return fmt.Errorf("%s.txt: no comment at the top states the subject", t.Name)
	case len(t.steps) == 0:
		return fmt.Errorf("%s.txt: nothing happens", t.Name)
	case tagged != (t.Differs != ""):
		return fmt.Errorf("%s.txt: the reason (differs:) goes together with lines marked real and ours", t.Name)
	case t.Since != "" && t.Since != "1.13":
		return fmt.Errorf("%s.txt: since %q: only 1.13 is known", t.Name, t.Since)
	}
	return nil
}
