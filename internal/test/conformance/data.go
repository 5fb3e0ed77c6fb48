package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A received is a line from the server. If the line announces a dictionary or a list, it
// contains the entries.
type received struct {
	line    []byte
	verb    verb // expectLine, expectDict or expectList
	entries []entry
}

// receive reads a line and the data that it announces.
func (p *player) receive(st *stream, within time.Duration) (r received, err error) {
	r.verb = expectLine
	if r.line, err = st.line(within); err != nil {
		return r, err
	}
	if entries, isList, err := p.readYAML(r.line, st); err == nil {
		r.entries, r.verb = entries, expectDict
		if isList {
			r.verb = expectList
		}
	}
	return r, nil
}

// lines returns the text of a transcript that expects exactly this reply. head starts the
// first line.
func (r *received) lines(head string) (lines []string) {
	switch r.verb {
	case expectLine:
		return []string{textLine(head, r.line)}
	case expectList:
		lines = []string{head + "< OK list"}
		for _, e := range r.entries {
			lines = append(lines, "- "+e.key)
		}
	default:
		lines = []string{head + "< OK dict all"}
		for _, e := range r.entries {
			lines = append(lines, e.key+": "+escape([]byte(e.value)))
		}
	}
	return lines
}

// accepts reports whether a step expects a reply.
func (s *step) accepts(r *received) bool {
	switch {
	case s.verb == expectLine:
		same, _ := matches(s.pattern, r.line)
		return same
	case s.verb != r.verb:
		return false
	case s.verb == expectList || s.all:
		return slices.EqualFunc(s.entries, r.entries, entry.accepts)
	}
	return !slices.ContainsFunc(s.entries, func(want entry) bool { return !slices.ContainsFunc(r.entries, want.accepts) })
}

// accepts reports whether an entry of a transcript matches a received entry.
func (e entry) accepts(r entry) bool {
	same, _ := matches(e.value, []byte(r.value))
	return e.key == r.key && same
}

// readYAML reads the data that an OK line announces.
func (p *player) readYAML(ok []byte, st *stream) (entries []entry, isList bool, err error) {
	digits, found := bytes.CutPrefix(ok, []byte("OK "))
	n, err := strconv.Atoi(string(digits))
	if !found || err != nil {
		return nil, false, fmt.Errorf("no data")
	}
	data, err := st.take(n+2, patience)
	if err != nil {
		return nil, false, err
	}
	text, ok1 := strings.CutSuffix(string(data), "\n\r\n")
	text, ok2 := strings.CutPrefix(text, "---")
	if !ok1 || !ok2 {
		return nil, false, fmt.Errorf("not YAML: %q", data)
	}
	for _, line := range strings.Split(text, "\n")[1:] {
		if name, ok := strings.CutPrefix(line, "- "); ok {
			entries, isList = append(entries, entry{key: name}), true
			continue
		}
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, false, fmt.Errorf("not an entry: %q", line)
		}
		entries = append(entries, entry{key, p.dialect.value(key, value)})
	}
	return entries, isList, nil
}
