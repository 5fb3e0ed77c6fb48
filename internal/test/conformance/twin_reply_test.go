package conformance

import (
	"bytes"
	"strconv"
	"strings"
)

// A reply is one answer of a server: its line, and the data that follows it.
type reply struct {
	line string // without CR LF
	data string // data of RESERVED, FOUND and OK
}

// nextReply returns the first complete reply in buf. If there is none, ok is false.
func nextReply(buf []byte) (r reply, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(buf, []byte("\r\n"))
	if !ok {
		return reply{}, buf, false
	}
	r.line = string(line)
	words := strings.Fields(r.line)
	if len(words) < 2 || words[0] != "RESERVED" && words[0] != "FOUND" && words[0] != "OK" {
		return r, rest, true
	}
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return r, rest, true
	}
	if len(rest) < n+2 {
		return reply{}, buf, false
	}
	r.data = string(rest[:n+2])
	return r, rest[n+2:], true
}

// These values differ between two servers, or depend on the exact time of the reply.
var (
	ownValues = map[string]bool{
		"pid": true, "rusage-utime": true, "rusage-stime": true, "id": true,
	}
	momentary = map[string]bool{"age": true, "time-left": true, "pause-time-left": true, "uptime": true}
)

// diff compares our reply with the real server's. It returns the difference as lines of a
// transcript, or nil.
func diff(conn string, theirs, ours reply) []string {
	if theirs == ours {
		return nil
	}
	if !theirs.isDict() || !ours.isDict() {
		return append(theirs.render("real "+conn), ours.render("ours "+conn)...)
	}
	a, b := theirs.entries(), ours.entries()
	if strings.Contains(theirs.data, "\ncmd-put: ") && len(b) > len(a) {
		b = b[:len(a)] // beanpole adds keys at the end of stats
	}
	var lines []string
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if !sameEntry(x, y) {
			lines = append(lines, "real     "+x, "ours     "+y)
		}
	}
	return lines
}

func (r reply) isDict() bool {
	return strings.HasPrefix(r.line, "OK ") && strings.HasPrefix(r.data, "---\n") &&
		strings.HasSuffix(r.data, "\n\r\n") && strings.Contains(r.data, ": ")
}

// entries returns the lines of a dictionary without the envelope.
func (r reply) entries() []string {
	return strings.Split(r.data[len("---\n"):len(r.data)-len("\n\r\n")], "\n")
}

func sameEntry(theirs, ours string) bool {
	key, value, ok := strings.Cut(theirs, ": ")
	if !ok {
		return theirs == ours
	}
	ourKey, ourValue, _ := strings.Cut(ours, ": ")
	switch {
	case key != ourKey:
		return false
	case ownValues[key]:
		return true
	case momentary[key]:
		x, err1 := strconv.Atoi(value)
		y, err2 := strconv.Atoi(ourValue)
		return err1 == nil && err2 == nil && -1 <= x-y && x-y <= 1
	}
	return value == ourValue
}

// render returns a reply as lines of a transcript.
func (r reply) render(head string) []string {
	lines := []string{textLine(head, []byte(r.line))}
	if r.data != "" {
		lines = append(lines, head+"<< "+strconv.Quote(r.data))
	}
	return lines
}
