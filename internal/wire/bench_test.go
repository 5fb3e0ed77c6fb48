package wire

import (
	"strings"
	"testing"
)

var benchCommands = []struct {
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

func BenchmarkParse(b *testing.B) {
	for _, bc := range benchCommands {
		b.Run(bc.name, func(b *testing.B) {
			p := Parser{MaxBody: DefaultMaxBody}
			var cmd Command
			in := []byte(bc.in)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if n, ok := p.Next(in, &cmd); n != len(in) || !ok {
					b.Fatal(n, ok)
				}
			}
		})
	}
}

func BenchmarkParseReply(b *testing.B) {
	body := []byte(strings.Repeat("x", 64))
	for _, bc := range []struct {
		name string
		in   []byte
	}{
		{"INSERTED", AppendInserted(nil, 1234567)},
		{"RESERVED-64", AppendReserved(nil, 1234567, body)},
		{"DELETED", AppendWord(nil, Deleted)},
		{"TIMED_OUT", AppendWord(nil, TimedOut)},
		{"USING", AppendUsing(nil, "mail.outgoing")},
	} {
		b.Run(bc.name, func(b *testing.B) {
			var r Reply
			b.SetBytes(int64(len(bc.in)))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := ParseReply(bc.in, &r); n != len(bc.in) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	buf := make([]byte, 0, 1024)
	body := []byte(strings.Repeat("x", 64))
	for _, bc := range []struct {
		name string
		do   func()
	}{
		{"put-64", func() { buf = AppendPut(buf[:0], 1024, 0, 60, body) }},
		{"delete", func() { buf = AppendDelete(buf[:0], 1234567) }},
		{"reserve", func() { buf = AppendReserve(buf[:0]) }},
		{"INSERTED", func() { buf = AppendInserted(buf[:0], 1234567) }},
		{"RESERVED-64", func() { buf = AppendReserved(buf[:0], 1234567, body) }},
		{"DELETED", func() { buf = AppendWord(buf[:0], Deleted) }},
		{"list-item", func() { buf = AppendListItem(buf[:0], "mail.outgoing") }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bc.do()
			}
		})
	}
}
