package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// data reads OK, a length, and a dictionary or a list.
func (p *player) data(s *step, st *stream) (got []string, same bool) {
	line, err := st.line(patience)
	if err != nil {
		return p.whatever(s, st), false
	}
	entries, isList, err := p.readYAML(line, st)
	if err != nil {
		return append([]string{textLine(s.head(), line)}, p.whatever(s, st)...), false
	}
	g := step{conn: s.conn, side: s.side, verb: expectDict, scope: s.scope}
	switch {
	case isList || s.verb == expectList:
		g.verb, g.entries = expectList, entries
		same = isList && s.verb == expectList && slices.Equal(entries, s.entries)
	case s.scope == named:
		g.entries, same = compareNamed(s.entries, entries)
	default:
		g.entries, same = compareInOrder(s.entries, entries, s.scope == all)
	}
	return g.render(), same
}

// compareNamed looks up the wanted keys in the received entries. The result contains the
// patterns that match.
func compareNamed(want, received []entry) (got []entry, same bool) {
	same = true
	for _, w := range want {
		i := slices.IndexFunc(received, func(e entry) bool { return e.key == w.key })
		if i < 0 {
			same = false
			continue
		}
		e, match := compareEntry(w, received[i])
		got, same = append(got, e), same && match
	}
	return got, same
}

// compareInOrder compares the entries in order. If whole is true, there must be no
// further received entries.
func compareInOrder(want, received []entry, whole bool) (got []entry, same bool) {
	same = len(received) == len(want) || !whole && len(received) > len(want)
	for i, e := range received {
		if i >= len(want) {
			if whole {
				got = append(got, verbatim(received[i:])...)
			}
			break
		}
		e, match := compareEntry(want[i], e)
		got, same = append(got, e), same && match
	}
	return got, same
}

func compareEntry(want, received entry) (entry, bool) {
	match, _ := matches(want.value, []byte(received.value))
	if want.key == received.key && match {
		return want, true
	}
	return verbatim([]entry{received})[0], false
}

// verbatim turns received values into patterns that match only these values.
func verbatim(received []entry) []entry {
	list := make([]entry, len(received))
	for i, e := range received {
		list[i] = entry{e.key, escape([]byte(e.value))}
	}
	return list
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
