package wire

import (
	"strings"
	"testing"
)

var allocCommands = []struct {
	name, in string
}{
	{"put-64", "put 1024 0 60 64\r\n" + strings.Repeat("x", 64) + "\r\n"},
	{"put-4096", "put 1024 0 60 4096\r\n" + strings.Repeat("x", 4096) + "\r\n"},
	{"reserve", "reserve\r\n"},
	{"reserve-with-timeout", "reserve-with-timeout 30\r\n"},
	{"delete", "delete 1234567\r\n"},
	{"release", "release 1234567 1024 30\r\n"},
	{"touch", "touch 1234567\r\n"},
	{"use", "use mail.outgoing\r\n"},
	{"pause-tube", "pause-tube mail.outgoing 60\r\n"},
	{"list-jobs", "list-jobs mail.outgoing ready 1000 40000000000.12d687\r\n"},
	{"move-jobs", "move-jobs mail.outgoing mail.later buried\r\n"},
	{"unknown", "hello\r\n"},
}

// Functions that run once per command or reply allocate nothing.
func TestAllocations(t *testing.T) {
	p := Parser{MaxBody: DefaultMaxBody}
	var cmd Command
	var r Reply
	var s ServerStats
	var job JobStats
	body := []byte(strings.Repeat("x", 64))
	buf := make([]byte, 0, 4096)
	check := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	for _, bc := range allocCommands {
		in := []byte(bc.in)
		check("Next of "+bc.name, func() { p.Next(in, &cmd) })
	}
	half := AppendCommand(nil, &Command{Op: Put, TTR: 1, Body: body})
	half = half[:len(half)-3]
	check("Next of half a put", func() { p.Next(half, &cmd) })
	for _, tc := range replyTests {
		check("ParseReply of "+tc.text, func() { ParseReply(tc.bytes, &r) })
	}
	for name, f := range map[string]func(){
		"AppendCommand":       func() { AppendCommand(buf, &Command{Op: Put, Pri: 1, Delay: 2, TTR: 3, Body: body}) },
		"AppendNumber":        func() { AppendNumber(buf, Inserted, 1<<60) },
		"AppendJob":           func() { AppendJob(buf, Reserved, 1<<60, body) },
		"AppendUsing":         func() { AppendUsing(buf, "mail") },
		"AppendWord":          func() { AppendWord(buf, TimedOut) },
		"AppendList in parts": func() { AppendDataEnd(AppendListItem(AppendListStart(buf, 1, 4), "mail")) },
		"AppendStats":         func() { AppendStats(buf, &s) },
		"AppendTubeStats":     func() { AppendTubeStats(buf, &TubeStats{}) },
		"AppendListed":        func() { AppendListed(buf, &job, nil) },
		"AppendJobStats":      func() { AppendJobStats(buf, &job, Compat113) },
	} {
		check(name, f)
	}
}
