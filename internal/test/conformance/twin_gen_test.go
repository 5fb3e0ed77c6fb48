package conformance

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// An actKind is the kind of a step of a twin session.
type actKind int

const (
	actSend  actKind = iota
	actOpen          // the connection opens
	actClose         // the connection closes
	actHalf          // the connection closes its sending side
	actWait          // sleep until the next window
	actDrain
)

// An act is one step of a twin session.
type act struct {
	kind   actKind
	conn   string
	texts  []string // commands of actSend, each with its body
	cuts   []int    // offsets at which texts is cut into pieces
	blocks bool     // the reply can take a while
	timed  bool     // the command can start a time of 1 to 3 seconds
}

// A generator invents commands. It uses only the parts of the servers' state that free
// and waiting report.
//
// It avoids beanpole's deliberate differences, which are in transcripts with a "differs:"
// line. These are a CR within a line, a line that is one byte too long, an incomplete
// body, and several workers that wait for a tube. No command begins with a byte that ends
// a connection if it is the first.
type generator struct {
	rnd     *rand.Rand
	dialect Dialect
	timed   bool // use times of 1 to 3 seconds; otherwise all times are long
	maxSize int
	puts    uint64 // approximate number of assigned ids

	conn string              // connection of the next text
	held map[string][]string // most recent jobs that each connection has reserved

	// waits is set while a worker waits. A burst can wake the worker. The marker after
	// its reserve can then count before or after the rest of the burst. Therefore no
	// burst requests the counters.
	waits bool
}

var twinTubes = []string{"default", "a", "b", "long.name-with/all;kinds$of_(characters)+0"}

func (g *generator) pick(list ...string) string { return list[g.rnd.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *generator) tube() string { return g.pick(twinTubes...) }

// id returns an id, usually of a recent job. It never returns 1, the marker's id.
func (g *generator) id() string {
	switch {
	case g.chance(3):
		return g.pick("0", "18446744073709551615", "99999999", "002")
	case g.chance(70) && g.puts > 8:
		return strconv.FormatUint(2+g.puts-g.rnd.Uint64N(8), 10)
	}
	return strconv.FormatUint(2+g.rnd.Uint64N(g.puts+1), 10)
}

// heldID returns an id, usually of a job that the connection has reserved.
func (g *generator) heldID() string {
	if held := g.held[g.conn]; len(held) > 0 && g.chance(75) {
		return g.pick(held...)
	}
	return g.id()
}

// reserved records the job of a RESERVED reply.
func (g *generator) reserved(conn, line string) {
	if words := strings.Fields(line); len(words) > 1 && words[0] == "RESERVED" {
		g.held[conn] = append(g.held[conn], words[1])
		g.held[conn] = g.held[conn][max(0, len(g.held[conn])-4):]
	}
}

func (g *generator) pri() string {
	return g.pick("0", "0", "1", "5", "1023", "1024", "4294967295", strconv.Itoa(g.rnd.IntN(10)))
}

// seconds returns a number of seconds. Short times end during the session.
func (g *generator) seconds() string {
	if g.timed && g.chance(30) {
		return g.pick("1", "1", "2", "3")
	}
	return g.pick("60", "100", "86400", "4294967295")
}

func (g *generator) delay() string {
	if g.chance(70) {
		return "0"
	}
	return g.seconds()
}

// command returns one command that cannot block, with its body if it has one. timed
// reports whether the command can start one of the short times.
func (g *generator) command() (text string, timed bool) {
	switch n := g.rnd.IntN(100); {
	case n < 22:
		return g.put(), g.timed
	case n < 36:
		return "reserve-with-timeout 0\r\n", g.timed
	case n < 40:
		return "reserve-job " + g.id() + "\r\n", g.timed
	case n < 47:
		return "delete " + g.heldID() + "\r\n", false
	case n < 53:
		return "release " + g.heldID() + " " + g.pri() + " " + g.delay() + "\r\n", g.timed
	case n < 59:
		return "bury " + g.heldID() + " " + g.pri() + "\r\n", false
	case n < 62:
		return "touch " + g.heldID() + "\r\n", g.timed
	case n < 66:
		return "kick " + g.pick("0", "1", "1", "2", "3", "100", "4294967295") + "\r\n", false
	case n < 69:
		return "kick-job " + g.id() + "\r\n", false
	case n < 84:
		return g.question() + "\r\n", false
	case n < 88:
		return "use " + g.tube() + "\r\n", false
	case n < 91:
		return "watch " + g.tube() + "\r\n", false
	case n < 94:
		return "ignore " + g.tube() + "\r\n", false
	case n < 95:
		return "pause-tube " + g.tube() + " " + g.pick("0", "0", g.seconds()) + "\r\n", g.timed
	}
	return g.nonsense(), g.timed
}

// question returns a command that changes only counters.
func (g *generator) question() string {
	switch g.rnd.IntN(9) {
	case 0:
		return "peek " + g.id()
	case 1:
		return g.pick("peek-ready", "peek-delayed", "peek-buried")
	case 2, 3:
		return "stats-job " + g.heldID()
	case 4, 5:
		return "stats-tube " + g.tube()
	case 6:
		if g.waits {
			return "list-tube-used"
		}
		return "stats"
	case 7:
		return g.pick("list-tubes", "list-tubes-watched", "list-tube-used")
	}
	return "stats-tube nope"
}

func (g *generator) put() string {
	size := g.rnd.IntN(40)
	switch {
	case g.chance(4):
		size = g.rnd.IntN(3000)
	case g.chance(2):
		size = g.pick2(g.maxSize, g.maxSize+1, g.maxSize+g.rnd.IntN(300))
	}
	if size <= g.maxSize {
		g.puts++
	}
	body := make([]byte, size)
	binary := g.chance(20)
	for i := range body {
		if body[i] = 'a' + byte(g.rnd.IntN(26)); binary {
			body[i] = byte(g.rnd.Uint32())
		}
	}
	ttr := g.seconds()
	if g.chance(3) {
		ttr = "0"
		if !g.timed {
			ttr = "00100"
		}
	}
	return fmt.Sprintf("put %s %s %s %d\r\n%s\r\n", g.pri(), g.delay(), ttr, size, body)
}

func (g *generator) pick2(sizes ...int) int { return sizes[g.rnd.IntN(len(sizes))] }

// nonsense returns invalid text.
func (g *generator) nonsense() string {
	number := g.pick("-1", "x", "1x", "", " ", "4294967296", "18446744073709551616", "0x1", "+1", "1 ", "1e3", "\t1", "1\n")
	word := strings.Repeat("w", g.rnd.IntN(40))
	switch g.rnd.IntN(12) {
	case 0: // a body shorter than announced, completed by the next bytes
		g.puts++
		n := 1 + g.rnd.IntN(60)
		return fmt.Sprintf("put 0 0 100 %d\r\n%s\r\n%s\r\n", n, word[:min(len(word), n-1)], strings.Repeat("f", n+3))
	case 1: // a body longer than announced
		g.puts++
		return fmt.Sprintf("put 0 0 100 %d\r\n%sxxx\r\n", len(word), word)
	case 2: // a put that is refused early, so that its body is executed as a command
		return "put " + g.pick("0 0 0", "0 0 "+"-1 1", "x 0 0 1", "0 0 0 1 junk", "0 0 0 1 ") + "\r\n" + g.question() + "\r\n"
	case 3:
		return g.pick("delete ", "touch ", "peek ", "stats-job ", "kick-job ", "reserve-job ", "kick ") + number + "\r\n"
	case 4:
		return g.pick("release ", "bury ") + g.id() + " " + number + "\r\n"
	case 5:
		return "release " + g.id() + " 0 " + g.pick("-1", "x", "4294967296", "0 0", "0 ") + "\r\n"
	case 6:
		return g.pick("use ", "watch ", "ignore ", "stats-tube ") +
			g.pick("", "-a", " a", "a ", "a b", "a\x00", "é", strings.Repeat("n", 201)) + "\r\n"
	case 7:
		return "pause-tube" + g.pick("", " ", " a", " a -1", " a 1 ", " -a 1", " nope 1", "  a  0", "a 0", " "+strings.Repeat("n", 201)+" 0") + "\r\n"
	case 8:
		return strings.Repeat("l", g.pick2(221, 222, 224, 230, 300, 1000)) + "\r\n"
	case 9:
		return g.pick("", " ", "stats ", "statsx", "reserved", "reserve-", "peek-", "peek-readyx", "list-tube", "list-tubesx", "PUT 0 0 0 0", "\r\n\x00", "\n", "kick", "delete", "use", "q") + "\r\n"
	case 10:
		if g.dialect.V112 {
			number = g.pick("", " ", "x", "-", "0x1", "+0", "-0", "\t0", "0 junk", "4294967296", "-4294967296", "9223372036854775808")
		}
		if strings.TrimSpace(number) == "" || strings.Contains(number, "1") && !strings.ContainsAny(number, "-+") && len(number) < 5 {
			number = "0" // a command that does not wait
		}
		return "reserve-with-timeout " + number + "\r\n"
	}
	return word + "\r\n"
}

// burst returns some commands, as a whole or cut into pieces.
func (g *generator) burst(n int) act {
	a := act{kind: actSend, conn: g.conn}
	for range n {
		text, timed := g.command()
		a.texts = append(a.texts, text)
		a.timed = a.timed || timed
	}
	if size := len(strings.Join(a.texts, "")); g.chance(25) {
		for at := 1 + g.rnd.IntN(size); at < size && len(a.cuts) < 3; at += 1 + g.rnd.IntN(size) {
			a.cuts = append(a.cuts, at)
		}
	}
	return a
}

// inventory returns the requests for the whole state at the end of a session.
func (g *generator) inventory() []act {
	asks := act{kind: actSend, conn: "Z", texts: []string{"list-tubes\r\n", "stats\r\n"}}
	for _, tube := range twinTubes {
		asks.texts = append(asks.texts, "stats-tube "+tube+"\r\n",
			"use "+tube+"\r\n", "peek-ready\r\n", "peek-delayed\r\n", "peek-buried\r\n")
	}
	for id := range g.puts + 1 {
		asks.texts = append(asks.texts, fmt.Sprintf("stats-job %d\r\n", 2+id))
	}
	return []act{{kind: actOpen, conn: "Z"}, asks}
}

// split returns a burst as single commands.
func (a act) split() []act {
	if len(a.texts) < 2 {
		return []act{a}
	}
	var list []act
	for _, text := range a.texts {
		list = append(list, act{kind: actSend, conn: a.conn, texts: []string{text}, timed: a.timed})
	}
	return list
}

// next returns the next step. free contains the connections that can answer, unused
// contains unused names, and someoneWaits reports whether a connection waits.
func (g *generator) next(free, unused []string, someoneWaits bool) act {
	switch {
	case len(free) == 0 || len(unused) > 0 && g.chance(3):
		if len(unused) > 0 {
			return act{kind: actOpen, conn: g.pick(unused...)}
		}
		return act{kind: actWait}
	case len(free) > 1 && g.chance(2):
		a := act{kind: actClose, conn: g.pick(free...)}
		switch g.rnd.IntN(4) {
		case 0:
			return act{kind: actSend, conn: a.conn, texts: []string{"quit\r\n"}}
		case 1:
			a.kind = actHalf
		}
		return a
	case len(free) > 1 && !someoneWaits && g.chance(6):
		text := "reserve\r\n"
		if g.chance(60) {
			text = "reserve-with-timeout " + g.pick("60", "2147483647") + "\r\n"
			if g.timed {
				text = "reserve-with-timeout " + g.pick("1", "2", "3") + "\r\n"
			}
		}
		a := act{kind: actSend, conn: g.pick(free...), texts: []string{text}, blocks: true}
		a.timed = g.timed
		return a
	}
	n := 1
	if g.chance(10) {
		n = 2 + g.rnd.IntN(15)
	}
	g.waits = someoneWaits && n > 1
	g.conn = g.pick(free...)
	return g.burst(n)
}

// render returns a step as lines of a transcript.
func (a act) render() []string {
	switch a.kind {
	case actOpen:
		return []string{a.conn + " open"}
	case actClose:
		return []string{a.conn + " close"}
	case actHalf:
		return []string{a.conn + " half-close"}
	case actWait:
		return []string{"wait " + window.String()}
	case actDrain:
		return []string{"signal drain"}
	}
	text := strings.Join(a.texts, "")
	if lines := strings.Split(strings.TrimSuffix(text, "\r\n"), "\r\n"); len(lines) < 3 && strings.HasSuffix(text, "\r\n") {
		for i, line := range lines {
			lines[i] = strings.TrimSuffix(a.conn+"> "+escape([]byte(line)), " ")
		}
		return lines
	}
	return []string{a.conn + ">> " + strconv.Quote(text)}
}

// A timed session is divided into windows: it sends commands in the first part of a
// window and is silent for the rest. Times are 1, 2 or 3 seconds, and a window is 1.25.
// Therefore no time ends while the session sends commands, which reach the two servers at
// slightly different times.
const (
	window = 1250 * time.Millisecond
	active = 130 * time.Millisecond
)
