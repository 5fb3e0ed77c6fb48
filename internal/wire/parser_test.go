package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parseAll passes input to p like a connection, in pieces that end at the cuts. It
// returns copies of the commands and the unread rest of the input.
func parseAll(t testing.TB, p *Parser, input []byte, cuts ...int) (cmds []Command, left []byte) {
	t.Helper()
	var buf []byte
	at := 0
	for _, cut := range append(cuts, len(input)) {
		buf = append(buf, input[at:cut]...)
		at = cut
		for {
			var cmd Command
			n, ok := p.Next(buf, &cmd)
			if n < 0 || n > len(buf) || ok && n == 0 {
				t.Fatalf("Next consumed %d of %d bytes, ok=%v", n, len(buf), ok)
			}
			if need := p.Need(); need != 0 && (ok || n != 0 || need <= len(buf)) {
				t.Fatalf("Need is %d after Next of %d bytes returned %d, %v", need, len(buf), n, ok)
			}
			buf = buf[n:]
			if !ok {
				break
			}
			cmd.Tube = bytes.Clone(cmd.Tube)
			cmd.Body = bytes.Clone(cmd.Body)
			cmd.Text = bytes.Clone(cmd.Text)
			cmds = append(cmds, cmd)
		}
		if len(buf) >= MaxLine && p.Need() <= len(buf) {
			t.Fatalf("no progress with %d bytes, of which %d are needed", len(buf), p.Need())
		}
	}
	return cmds, buf
}

func format(op Op) Command { return Command{Op: op, Fault: FaultFormat} }

var unknown = Command{Fault: FaultUnknown}

// golden contains inputs and the results of beanstalkd's parser, which do not depend on
// the queue.
var golden = []struct {
	in   string
	want []Command
}{
	{"\r\n", []Command{unknown}},
	{"STATS\r\n", []Command{unknown}},
	{" stats\r\n", []Command{unknown}},
	{"stats \r\n", []Command{format(Stats)}},
	{"stats-foo\r\n", []Command{format(Stats)}},
	{"stats-job\r\n", []Command{format(Stats)}},
	{"stats-tube\r\n", []Command{format(Stats)}},
	{"stats\nstats\r\n", []Command{format(Stats)}},
	{"stats-tube nope\r\n", []Command{{Op: StatsTube, Counted: true, Tube: []byte("nope")}}},
	{"put\r\n", []Command{unknown}},
	{"put \r\n", []Command{format(Put)}},
	{"put 0 0 0\r\n", []Command{format(Put)}},
	{"put 0 0 0 0 \r\n\r\n", []Command{{Op: Put, Fault: FaultFormat, Counted: true}, unknown}},
	{"put   000 00 1 01\r\na\r\n", []Command{{Op: Put, Counted: true, TTR: 1, Body: []byte("a")}}},
	{"put 0 0 1 1\r\nabc\r\n", []Command{{Op: Put, Fault: FaultNoCRLF, Counted: true, TTR: 1, Count: 1}, unknown}},
	{"put 0 0 0 0\r\n\r\n", []Command{{Op: Put, Counted: true, Body: []byte{}}}},
	{"put 0 0 0 70000 junk\r\n" + strings.Repeat("\x00", 70002) + "stats\r\n",
		[]Command{{Op: Put, Fault: FaultTooBig, Counted: true, Count: 70000}, {Op: Stats, Counted: true}}},
	{"put 0 0 0 9 junk\r\ndelete 1\r\n", []Command{{Op: Put, Fault: FaultFormat, Counted: true}, {Op: Delete, Counted: true, ID: 1}}},
	{"put 0 0 0 4294967296\r\n", []Command{format(Put)}},
	{"put 0 0 0 10b\r\n", []Command{{Op: Put, Fault: FaultFormat, Counted: true}}},
	{"put +1 0 0 0\r\n", []Command{format(Put)}},
	{"put -1 0 0 0\r\n", []Command{format(Put)}},
	{"put 0x1 0 0 0\r\n", []Command{format(Put)}},
	{"put 4294967296 0 0 0\r\n", []Command{format(Put)}},
	{"put\t0 0 0 0\r\n", []Command{unknown}},
	{"put 0\t0 0 0\r\n", []Command{format(Put)}},
	{"peek\r\n", []Command{unknown}},
	{"peek  1\r\n", []Command{{Op: Peek, Counted: true, ID: 1}}},
	{"peek 1 \r\n", []Command{{Op: Peek, Fault: FaultFormat, ID: 1}}},
	{"peek 18446744073709551615\r\n", []Command{{Op: Peek, Counted: true, ID: math.MaxUint64}}},
	{"peek 18446744073709551616\r\n", []Command{format(Peek)}},
	{"peek 184467440737095516150\r\n", []Command{format(Peek)}},
	{"peek 000000000000000000000000000000000000000000000001\r\n", []Command{{Op: Peek, Counted: true, ID: 1}}},
	{"peek foo111\r\n", []Command{format(Peek)}},
	{"peek 111foo\r\n", []Command{{Op: Peek, Fault: FaultFormat, ID: 111}}},
	{"peek-ready \r\n", []Command{format(PeekReady)}},
	{"delete 0\r\n", []Command{{Op: Delete, Counted: true}}},
	{"delete 18446744073709551616\r\n", []Command{format(Delete)}},
	{"kick \r\n", []Command{format(Kick)}},
	{"kick x\r\n", []Command{format(Kick)}},
	{"kick -\r\n", []Command{format(Kick)}},
	{"kick +-1\r\n", []Command{format(Kick)}},
	{"kick 1x\r\n", []Command{{Op: Kick, Counted: true, Count: 1}}},
	{"kick +0\r\n", []Command{{Op: Kick, Counted: true}}},
	{"kick \t\n\v\f 2\r\n", []Command{{Op: Kick, Counted: true, Count: 2}}},
	{"kick -1\r\n", []Command{{Op: Kick, Counted: true, Count: math.MaxUint32}}},
	{"kick -18446744073709551615\r\n", []Command{{Op: Kick, Counted: true, Count: 1}}},
	{"kick 4294967296\r\n", []Command{{Op: Kick, Counted: true}}},
	{"kick 4294967301\r\n", []Command{{Op: Kick, Counted: true, Count: 5}}},
	{"kick 0x9\r\n", []Command{{Op: Kick, Counted: true}}},
	{"kick 18446744073709551616\r\n", []Command{format(Kick)}},
	{"kick-job\r\n", []Command{unknown}},
	{"reserve \r\n", []Command{format(Reserve)}},
	{"reserved\r\n", []Command{format(Reserve)}},
	{"reserve-job\r\n", []Command{format(Reserve)}},
	{"reserve-with-timeout\r\n", []Command{format(Reserve)}},
	{"reserve-with-timeout \r\n", []Command{format(ReserveTimeout)}},
	{"reserve-with-timeout -1\r\n", []Command{format(ReserveTimeout)}},
	{"reserve-with-timeout 2147483648\r\n", []Command{format(ReserveTimeout)}},
	{"reserve-with-timeout 2147483647\r\n", []Command{{Op: ReserveTimeout, Counted: true, Timeout: MaxTimeout}}},
	{"reserve-with-timeout 0 junk\r\n", []Command{{Op: ReserveTimeout, Counted: true}}},
	{"release 1 0\r\n", []Command{{Op: Release, Fault: FaultFormat, ID: 1}}},
	{"release 1 0 0 0\r\n", []Command{{Op: Release, Fault: FaultFormat, ID: 1}}},
	{"use\r\n", []Command{unknown}},
	{"use \r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte{}}}},
	{"use  a\r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte(" a")}}},
	{"use a \r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte("a ")}}},
	{"use -a\r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte("-a")}}},
	{"use -\r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte("-")}}},
	{"use x_y\r\n", []Command{{Op: Use, Counted: true, Tube: []byte("x_y")}}},
	{"use a\x00b\r\n", []Command{format(Unknown)}},
	{"quit\x00\r\n", []Command{format(Unknown)}},
	{"\x00\r\n", []Command{format(Unknown)}},
	{"watch default\r\n", []Command{{Op: Watch, Counted: true, Tube: []byte("default")}}},
	{"ignore nope\r\n", []Command{{Op: Ignore, Counted: true, Tube: []byte("nope")}}},
	{"pause-tube\r\n", []Command{format(PauseTube)}},
	{"pause-tube a\r\n", []Command{{Op: PauseTube, Fault: FaultFormat, Tube: []byte("a")}}},
	{"pause-tube a 1 \r\n", []Command{{Op: PauseTube, Fault: FaultFormat, Tube: []byte("a"), Delay: 1}}},
	{"pause-tube -a 1\r\n", []Command{{Op: PauseTube, Fault: FaultFormat, Counted: true, Tube: []byte("-a"), Delay: 1}}},
	{"pause-tubedefault 0\r\n", []Command{{Op: PauseTube, Counted: true, Tube: []byte("default")}}},
	{"pause-tube   default   0\r\n", []Command{{Op: PauseTube, Counted: true, Tube: []byte("default")}}},
	{"list-tube\r\n", []Command{unknown}},
	{"POST / HTTP/1.1\r\nput 0 0 1 1\r\nx\r\n", []Command{{Fault: FaultHTTP}}},
	{"hOSt:localhost:11300\r\n", []Command{{Fault: FaultHTTP}}},
	{"POST\r\nHost :\r\n POST /\r\n", []Command{unknown, unknown, unknown}},
	{"PROPFIND / HTTP/1.1\r\nuse a\r\n", []Command{{Fault: FaultHTTP}}},
	{"CONNECT x:1 HTTP/1.1\r\nuse a\r\n", []Command{{Fault: FaultHTTP}}},
	{"PRI * HTTP/2.0\r\nuse a\r\n", []Command{{Fault: FaultHTTP}}},
	{"OPTIONS * http/1.0\r\nuse a\r\n", []Command{{Fault: FaultHTTP}}},
	{"get /\r\nuse a\r\n", []Command{{Fault: FaultHTTP}}},
	{"M-SEARCH /" + strings.Repeat("x", MaxLine) + "\r\n", []Command{{Fault: FaultHTTP}}},
	{"CONNECT x:1\r\n1 /\r\n /\r\nget x /\r\n", []Command{unknown, unknown, unknown, unknown}},
	{"POST /" + strings.Repeat("x", MaxLine) + " HTTP/1.1\r\n", []Command{{Fault: FaultHTTP}}},
	{"GET /" + strings.Repeat("x", MaxLine) + " HTTP/1.1\r\nhost: a\r\n", []Command{{Fault: FaultHTTP}}},
	{"list-tubes x\r\n", []Command{format(ListTubes)}},
	{"list-tubes-watchedx\r\n", []Command{format(ListTubesWatched)}},
	{"quitnow\r\n", []Command{{Op: Quit, Counted: true}}},
	{"use a\r\nuse b\r\n", []Command{
		{Op: Use, Counted: true, Tube: []byte("a")}, {Op: Use, Counted: true, Tube: []byte("b")}}},
}

// framing contains lines of all lengths around the limits, and stray CRs. A lone CR and a
// CR at the end of the buffer deliberately differ from beanstalkd.
var framing = []struct {
	in   string
	want []Command
}{
	{strings.Repeat("a", 222) + "\r\n", []Command{unknown}},
	{strings.Repeat("a", 223) + "\r\nstats\r\n", []Command{format(Unknown), {Op: Stats, Counted: true}}},
	{strings.Repeat("a", 224) + "\r\nstats\r\n", []Command{format(Unknown), {Op: Stats, Counted: true}}},
	{strings.Repeat("a", 447) + "\r\nstats\r\n", []Command{format(Unknown), {Op: Stats, Counted: true}}},
	{strings.Repeat("a", 500) + "\r\nput 0 0 1 1\r\nx\r\n", []Command{
		format(Unknown), {Op: Put, Counted: true, TTR: 1, Body: []byte("x")}}},
	{strings.Repeat("a", 223) + "\rb\r\nstats\r\n", []Command{format(Unknown), {Op: Stats, Counted: true}}},
	{strings.Repeat("\r", 300) + "\nstats\r\n", []Command{format(Unknown), {Op: Stats, Counted: true}}},
	{"use a\rb\r\nstats\r\n", []Command{{Op: Use, Fault: FaultFormat, Tube: []byte("a\rb")}, {Op: Stats, Counted: true}}},
	{"stats\r\r\nstats\r\n", []Command{format(Stats), {Op: Stats, Counted: true}}},
	{"quit\rnow\r\n", []Command{{Op: Quit, Counted: true}}},
	{"use " + strings.Repeat("x", 200) + "\r\n", []Command{{Op: Use, Counted: true, Tube: bytes.Repeat([]byte("x"), 200)}}},
	{"use " + strings.Repeat("x", 201) + "\r\n", []Command{
		{Op: Use, Fault: FaultFormat, Tube: bytes.Repeat([]byte("x"), 201)}}},
	{"pause-tube " + strings.Repeat("x", 200) + " 4294967295\r\n", []Command{
		{Op: PauseTube, Counted: true, Tube: bytes.Repeat([]byte("x"), 200), Delay: math.MaxUint32}}},
	{"pause-tube " + strings.Repeat("x", 201) + " 1\r\n", []Command{
		{Op: PauseTube, Fault: FaultFormat, Counted: true, Tube: bytes.Repeat([]byte("x"), 201), Delay: 1}}},
	{"stats", nil},
	{"stats\n", nil},
	{"put 0 0 1 5\r\nabc\r\n", nil},
}

func TestGolden(t *testing.T) {
	for _, tc := range slices.Concat(golden, framing) {
		p := Parser{MaxBody: DefaultMaxBody}
		got, _ := parseAll(t, &p, []byte(tc.in))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%.80q: (-want +got)\n%s", tc.in, diff)
		}
	}
}

// Version 1.12 accepts the same timeouts as Debian's beanstalkd.
func TestTimeoutsOf112(t *testing.T) {
	for arg, want := range map[string]uint32{
		"7": 7, " 7 x": 7, "": 0, " ": 0, "x": 0, "-": 0, "-0": 0, "+1": 1, " \t1x": 1, "0x9": 0, "2147483647": MaxTimeout,
		"-1": Forever, "2147483648": Forever, "4294967295": Forever, "4294967296": 0, "4294967297": 1, "-4294967295": 1, "-4294967296": 0,
		"9223372036854775807": Forever, "-9223372036854775808": 0,
	} {
		p := Parser{Compat: Compat112}
		got, _ := parseAll(t, &p, []byte("reserve-with-timeout "+arg+"\r\n"))
		if diff := cmp.Diff([]Command{{Op: ReserveTimeout, Counted: true, Timeout: want}}, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", arg, diff)
		}
	}
	for line, want := range map[string]Command{
		"reserve-with-timeout":                      format(Reserve),
		"reserve-with-timeout 9223372036854775808":  format(ReserveTimeout),
		"reserve-with-timeout -9223372036854775809": format(ReserveTimeout),
	} {
		p := Parser{Compat: Compat112}
		got, _ := parseAll(t, &p, []byte(line+"\r\n"))
		if diff := cmp.Diff([]Command{want}, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", line, diff)
		}
	}
}

func TestParseCompat(t *testing.T) {
	for _, c := range []Compat{Compat113, Compat112} {
		if got, err := ParseCompat(c.String()); got != c || err != nil {
			t.Errorf("ParseCompat(%q) = %v, %v", c, got, err)
		}
	}
	if _, err := ParseCompat("1.14"); err == nil {
		t.Error("1.14 is accepted")
	}
}

// The result does not depend on the cuts: at every byte, at every pair of positions in a
// short stream, and at all positions.
func TestCuts(t *testing.T) {
	for _, tc := range slices.Concat(golden, framing) {
		in := []byte(tc.in)
		if len(in) > 1000 {
			in = append(in[:300:300], in[len(in)-300:]...) // the skipped body is smaller
		}
		p := Parser{MaxBody: 64}
		want, wantLeft := parseAll(t, &p, in)
		check := func(cuts ...int) {
			t.Helper()
			p := Parser{MaxBody: 64}
			got, left := parseAll(t, &p, in, cuts...)
			if !cmp.Equal(got, want) || !bytes.Equal(left, wantLeft) {
				t.Errorf("%.80q cut at %v: %v, left %q; want %v, left %q", in, cuts, got, left, want, wantLeft)
			}
		}
		var each []int
		for i := range len(in) {
			each = append(each, i)
			check(i)
			if len(in) < 40 {
				for j := i; j < len(in); j++ {
					check(i, j)
				}
			}
		}
		check(each...)
	}
}

// Each row accepts a valid line and rejects invalid lines.
func TestRows(t *testing.T) {
	num := "7"
	tube := "mail"
	for op := Unknown + 1; op < NumOps; op++ {
		var good string
		bad := []string{}
		switch commands[op].args {
		case args():
			good, bad = "", []string{" ", "x", " 1"}
		case args(argIgnored):
			good = " whatever"
		case args(argID):
			good, bad = num, []string{"", " ", "x", "-1", "+1", "7 ", "7x", "7 7", "\t7", "18446744073709551616"}
		case args(argID, argPri):
			good, bad = "7 8", []string{"", "7", "7 ", "7 x", "7 8 ", "7 8 9", "7 4294967296", "7 -8"}
		case args(argID, argPri, argDelay):
			good, bad = "7 8 9", []string{"", "7", "7 8", "7 8 ", "7 8 x", "7 8 9 ", "7 8 4294967296", "x 8 9"}
		case args(argPri, argDelay, argTTR, argSize):
			good, bad = "7 8 9 0", []string{"", "7 8 9", "7 8 9 x", "7 8 9 4294967296", "7 8 4294967296 0"}
		case args(argTimeout, argIgnored):
			good, bad = "7 x", []string{"", " ", "x", "-7", "2147483648"}
		case args(argCount, argIgnored):
			good, bad = " -7x", []string{"", "x", "-", "--7", "18446744073709551616"}
		case args(argToken):
			good = "a token"
		case args(argTube):
			good, bad = tube, []string{"", " mail", "mail ", "ma il", "-mail", "ma*il", "é", strings.Repeat("x", 201)}
		case args(argLooseTube, argDelay):
			good, bad = " mail 7", []string{"", " ", " mail", " mail x", " mail 7 ", " mail 4294967296", " * 7", "\tmail 7"}
		case args(argName, argState, optional|argLimit, optional|argCursor):
			good, bad = "  mail  delayed 7 1f.a", []string{"", "mail", "mail ", "mail any", "mail ready ", "mail ready 0", "mail ready x", "mail ready 7x", "mail ready 7 ",
				"mail ready 4294967296", "mail ready 7 1f.a ", "mail ready 7 1f.a x", "-mail ready", "ma*il ready", "mail Ready", "\tmail ready", strings.Repeat("x", 201) + " ready"}
		case args(argFacts):
			good, bad = "  left tube", []string{" Tube", " tube tube", " tube\treserves", " trace", "x", " =", " tube=mail"}
		case args(argBatch, optional|argWait):
			good, bad = " 1000  7", []string{"", " ", "0", "1001", "x", "7x", "-7", "7 ", "7 x", "7 -1", "7 2147483648", "7 7 ", "7 7 7", "99999999999999999999"}
		case args(argIDs):
			good, bad = "7  18446744073709551615 0", []string{"", " ", "x", "-1", "7 ", "7 x", "7x", "7,8", "18446744073709551616", strings.Repeat("7 ", MaxBatch) + "7"}
		case args(argID, argNote):
			good, bad = "7  SMTPAuthenticationError: 535 "+strings.Repeat("é", 84), []string{"", "7", "7 ", "x a", " a", "7 a\tb", "7 a\x7f", "7 \u0085", "7 \xff", "7 " + strings.Repeat("x", MaxNote+1)}
		case args(argName, optional|argIdle, optional|argLimit):
			good, bad = tube, []string{"", " ", "mail ", "mail 7", "mail any", "mail reserved", "mail ready x", "mail ready 7 ", "mail ready 7 7", "-mail"}
		case args(argName, argOther, argIdle, optional|argLimit):
			good, bad = "mail web buried 7", []string{"", "mail", "mail web", "mail buried", "mail -web ready", "mail web reserved", "mail web ready x", "mail web ready 7 ", "mail web ready 7 7"}
		default:
			t.Errorf("%v: no test for its arguments", op)
			continue
		}
		verb := commands[op].verb
		good = verb + good + "\r\n"
		if op == Put {
			good += "\r\n"
		}
		p := Parser{Auth: true}
		got, left := parseAll(t, &p, []byte(good))
		if len(got) != 1 || got[0].Op != op || got[0].Fault != None || !got[0].Counted || len(left) > 0 {
			t.Errorf("%q: %+v, left %q", good, got, left)
		}
		for _, args := range bad {
			line := verb + args + "\r\n"
			got, left := parseAll(t, &p, []byte(line))
			if len(got) != 1 || got[0].Op != op || got[0].Fault != FaultFormat || got[0].Counted || len(left) > 0 {
				t.Errorf("%q: %+v, left %q", line, got, left)
			}
		}
	}
}

func TestMaxBody(t *testing.T) {
	put := func(n int) string {
		return fmt.Sprintf("put 0 0 1 %d\r\n%s\r\n", n, strings.Repeat("x", n))
	}
	for _, limit := range []int{0, 1, 10, 65535} {
		p := Parser{MaxBody: limit}
		got, left := parseAll(t, &p, []byte(put(limit)+put(limit+1)+put(0)))
		want := []Command{
			{Op: Put, Counted: true, TTR: 1, Body: bytes.Repeat([]byte("x"), limit)},
			{Op: Put, Counted: true, Fault: FaultTooBig, Count: uint32(limit + 1)},
			{Op: Put, Counted: true, TTR: 1, Body: []byte{}},
		}
		if diff := cmp.Diff(want, got); diff != "" || len(left) > 0 {
			t.Errorf("limit %d: left %q (-want +got)\n%s", limit, left, diff)
		}
	}
}

// The largest announced size is 4294967295. With the CR LF, the size exceeds 32 bits.
func TestSkip4GiB(t *testing.T) {
	p := Parser{MaxBody: LargestMaxBody}
	var cmd Command
	head := []byte("put 0 0 1 4294967295\r\n")
	if n, ok := p.Next(head, &cmd); n != len(head) || ok {
		t.Fatal(n, ok)
	}
	chunk := make([]byte, 1<<20)
	for left := int64(4294967295 + 2); left > 0; {
		part := chunk[:min(left, int64(len(chunk)))]
		left -= int64(len(part))
		n, ok := p.Next(part, &cmd)
		if n != len(part) || ok != (left == 0) {
			t.Fatalf("%d bytes before the end: %d, %v", left, n, ok)
		}
	}
	if want := (Command{Op: Put, Fault: FaultTooBig, Counted: true, Count: 4294967295}); !cmp.Equal(cmd, want) {
		t.Errorf("%+v", cmd)
	}
	if n, ok := p.Next([]byte("stats\r\n"), &cmd); n != 7 || !ok || cmd.Op != Stats {
		t.Errorf("afterwards: %d, %v, %+v", n, ok, cmd)
	}
}

// Two names of the maximum length fit in a line of the commands that need them. Lines of
// other commands keep their limit.
func TestLongLines(t *testing.T) {
	from, to := strings.Repeat("a", MaxTube), strings.Repeat("b", MaxTube)
	longest := "move-jobs " + from + " " + to + " delayed 4294967295"
	cursor := "list-jobs " + from + " delayed 4294967295 ffffffffffffffff.ffffffff"
	tooLong := "flush-tube " + from + " ready " + strings.Repeat("0", MaxLongLine)
	for _, tc := range []struct {
		in   string
		want []Command
	}{
		{longest, []Command{{Op: MoveJobs, Counted: true, Tube: []byte(from), Text: []byte(to), State: StateDelayed, Count: math.MaxUint32}}},
		{cursor, []Command{{Op: ListJobs, Counted: true, Tube: []byte(from), Text: []byte("ffffffffffffffff.ffffffff"), State: StateDelayed, Count: math.MaxUint32}}},
		{tooLong, []Command{format(Unknown)}},
		{"reserve-batch " + strings.Repeat("0", MaxLine), []Command{format(Unknown)}},
		{tooLong[:MaxLongLine-3] + "1", []Command{{Op: FlushTube, Counted: true, Tube: []byte(from), State: StateReady, Count: 1}}},
		{tooLong[:MaxLongLine-2] + "1", []Command{format(Unknown)}},
		{"pause-tube " + strings.Repeat("0", MaxLongLine), []Command{format(Unknown)}},
	} {
		in := []byte(tc.in + "\r\nstats\r\n")
		want := append(tc.want, Command{Op: Stats, Counted: true})
		for cut := range in {
			var p Parser
			got, left := parseAll(t, &p, in, cut)
			if !cmp.Equal(got, want) || len(left) > 0 {
				t.Fatalf("%.30q, cut at %d: %+v, left %q", tc.in, cut, got, left)
			}
		}
	}
}

// A delete-batch can contain the maximum number of ids of any length.
func TestLongestBatch(t *testing.T) {
	ids := []byte(strings.Repeat(" "+strconv.FormatUint(math.MaxUint64, 10), MaxBatch)[1:])
	in := AppendCommand(nil, &Command{Op: DeleteBatch, Text: ids})
	if len(in) != MaxBatchLine {
		t.Errorf("the longest line has %d bytes, want %d", len(in), MaxBatchLine)
	}
	more := strings.Replace(string(in), " ", "  ", 1)
	for _, cut := range []int{1, MaxLine, MaxLongLine, len(in) - 1} {
		var p Parser
		got, left := parseAll(t, &p, append(in, more+"stats\r\n"...), cut)
		want := []Command{{Op: DeleteBatch, Counted: true, Text: ids}, format(Unknown), {Op: Stats, Counted: true}}
		if !cmp.Equal(got, want) || len(left) > 0 {
			t.Fatalf("cut at %d: %d commands, left %q", cut, len(got), left)
		}
	}
	n := 0
	for id, rest, ok := NextID(ids); ok; id, rest, ok = NextID(rest) {
		if n++; id != math.MaxUint64 {
			t.Fatal(id)
		}
	}
	if n != MaxBatch {
		t.Errorf("%d ids", n)
	}
}

func TestNeed(t *testing.T) {
	p := Parser{MaxBody: 100}
	var cmd Command
	const line = "put 0 0 1 50\r\n"
	for _, tc := range []struct {
		in   string
		need int
	}{
		{"", 0},
		{"put 0 0 1 50\r", 0},
		{line, len(line) + 52},
		{line + strings.Repeat("x", 51), len(line) + 52},
	} {
		if n, ok := p.Next([]byte(tc.in), &cmd); n != 0 || ok || p.Need() != tc.need {
			t.Errorf("%q: %d, %v; need %d, want %d", tc.in, n, ok, p.Need(), tc.need)
		}
	}
	if n, ok := p.Next([]byte("stats\r\n"), &cmd); n != 7 || !ok || p.Need() != 0 {
		t.Errorf("a whole command: %d, %v, need %d", n, ok, p.Need())
	}
}

func TestDiscarding(t *testing.T) {
	for _, start := range []string{strings.Repeat("a", MaxLine), "put 0 0 1 2\r\na"} {
		var p Parser
		var cmd Command
		if n, ok := p.Next([]byte(start), &cmd); n != len(start) || ok || !p.Discarding() {
			t.Errorf("%q: %d, %v, discarding %v", start, n, ok, p.Discarding())
		}
		if n, ok := p.Next([]byte("a\r\n"), &cmd); n != 3 || !ok || p.Discarding() {
			t.Errorf("the end of %q: %d, %v, discarding %v", start, n, ok, p.Discarding())
		}
		if n, ok := p.Next([]byte("put 0 0 1 0\r\n"), &cmd); n != 0 || ok || p.Discarding() {
			t.Errorf("a put that waits for its body: %d, %v, discarding %v", n, ok, p.Discarding())
		}
	}
}

// A body that aliases the input has no capacity beyond its end.
func TestBodyCapacity(t *testing.T) {
	p := Parser{MaxBody: 100}
	var cmd Command
	in := []byte("put 0 0 1 1\r\na\r\nstats\r\n")
	if _, ok := p.Next(in, &cmd); !ok || cap(cmd.Body) != 1 {
		t.Errorf("%v, capacity %d", ok, cap(cmd.Body))
	}
}
