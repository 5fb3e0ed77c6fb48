package wire

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var replyTests = []struct {
	bytes []byte // result of the append function
	text  string
	want  Reply
}{
	{AppendNumber(nil, Inserted, 1), "INSERTED 1\r\n", Reply{Kind: Inserted, ID: 1}},
	{AppendNumber(nil, Inserted, math.MaxUint64), "INSERTED 18446744073709551615\r\n", Reply{Kind: Inserted, ID: math.MaxUint64}},
	{AppendNumber(nil, Buried, 7), "BURIED 7\r\n", Reply{Kind: Buried, ID: 7}},
	{AppendJob(nil, Reserved, 7, []byte("a\r\nb")), "RESERVED 7 4\r\na\r\nb\r\n", Reply{Kind: Reserved, ID: 7, Body: []byte("a\r\nb")}},
	{AppendJob(nil, Reserved, 7, nil), "RESERVED 7 0\r\n\r\n", Reply{Kind: Reserved, ID: 7, Body: []byte{}}},
	{AppendJob(nil, Found, 7, []byte("a")), "FOUND 7 1\r\na\r\n", Reply{Kind: Found, ID: 7, Body: []byte("a")}},
	{AppendDataEnd(AppendFacts(AppendJobStart(nil, Found, 7, 0), 0x21, &JobStats{Tube: "mail", Reserves: 3})), "FOUND 7 0 tube=mail reserves=3\r\n\r\n",
		Reply{Kind: Found, ID: 7, Facts: []byte("tube=mail reserves=3"), Body: []byte{}}},
	{AppendDataEnd(AppendFacts(AppendJobStart(nil, Reserved, math.MaxUint64, 0), longestFacts, &longestJob)), longestLine + "\r\n",
		Reply{Kind: Reserved, ID: math.MaxUint64, Facts: []byte(longestLine[strings.Index(longestLine, "tube") : len(longestLine)-2]), Body: []byte{}}},
	{AppendNumber(nil, ReservedBatch, 2), "RESERVED_BATCH 2\r\n", Reply{Kind: ReservedBatch, N: 2}},
	{AppendDeletedBatch(nil, 7, 2), "DELETED_BATCH 7 2\r\n", Reply{Kind: DeletedBatch, N: 7, Lost: 2}},
	{AppendDataEnd(AppendListItem(AppendListStart(nil, 1, 7), "default")), "OK 14\r\n---\n- default\n\r\n", Reply{Kind: OK, Body: []byte("---\n- default\n")}},
	{AppendWord(nil, OK), "OK\r\n", Reply{Kind: OK}},
	{AppendUsing(nil, "mail"), "USING mail\r\n", Reply{Kind: Using, Tube: []byte("mail")}},
	{AppendNumber(nil, Watching, 2), "WATCHING 2\r\n", Reply{Kind: Watching, N: 2}},
	{AppendNumber(nil, Kicked, 0), "KICKED 0\r\n", Reply{Kind: Kicked}},
	{AppendNumber(nil, Kicked, math.MaxUint32), "KICKED 4294967295\r\n", Reply{Kind: Kicked, N: math.MaxUint32}},
	{AppendNumber(nil, Flushed, 0), "FLUSHED 0\r\n", Reply{Kind: Flushed}},
	{AppendNumber(nil, Moved, math.MaxUint64), "MOVED 18446744073709551615\r\n", Reply{Kind: Moved, N: math.MaxUint64}},
	{AppendWord(nil, Kicked), "KICKED\r\n", Reply{Kind: Kicked, N: 1}},
	{AppendWord(nil, Buried), "BURIED\r\n", Reply{Kind: Buried}},
	{AppendWord(nil, Deleted), "DELETED\r\n", Reply{Kind: Deleted}},
	{AppendWord(nil, Released), "RELEASED\r\n", Reply{Kind: Released}},
	{AppendWord(nil, Touched), "TOUCHED\r\n", Reply{Kind: Touched}},
	{AppendWord(nil, Noted), "NOTED\r\n", Reply{Kind: Noted}},
	{AppendWord(nil, Paused), "PAUSED\r\n", Reply{Kind: Paused}},
	{AppendWord(nil, NotFound), "NOT_FOUND\r\n", Reply{Kind: NotFound}},
	{AppendWord(nil, NotIgnored), "NOT_IGNORED\r\n", Reply{Kind: NotIgnored}},
	{AppendWord(nil, DeadlineSoon), "DEADLINE_SOON\r\n", Reply{Kind: DeadlineSoon}},
	{AppendWord(nil, TimedOut), "TIMED_OUT\r\n", Reply{Kind: TimedOut}},
	{AppendWord(nil, Draining), "DRAINING\r\n", Reply{Kind: Draining}},
	{AppendWord(nil, FaultNoCRLF.Word()), "EXPECTED_CRLF\r\n", Reply{Kind: ExpectedCRLF}},
	{AppendWord(nil, FaultTooBig.Word()), "JOB_TOO_BIG\r\n", Reply{Kind: JobTooBig}},
	{AppendWord(nil, FaultFormat.Word()), "BAD_FORMAT\r\n", Reply{Kind: BadFormat}},
	{AppendWord(nil, FaultUnknown.Word()), "UNKNOWN_COMMAND\r\n", Reply{Kind: UnknownCommand}},
	{AppendWord(nil, OutOfMemory), "OUT_OF_MEMORY\r\n", Reply{Kind: OutOfMemory}},
	{AppendWord(nil, Authenticated), "AUTHENTICATED\r\n", Reply{Kind: Authenticated}},
	{AppendWord(nil, Unauthorized), "UNAUTHORIZED\r\n", Reply{Kind: Unauthorized}},
	{AppendWord(nil, InternalError), "INTERNAL_ERROR\r\n", Reply{Kind: InternalError}},
}

// longestFacts are all facts of a job. A line with them is longer than any line of
// beanstalkd.
const longestFacts = Facts(0x7654321)

var (
	longestJob  = JobStats{Tube: strings.Repeat("x", MaxTube), Reserves: math.MaxUint32, Timeouts: math.MaxUint32, Age: math.MaxUint64, TimeLeft: math.MaxUint32, TTR: math.MaxUint32, Pri: math.MaxUint32}
	longestLine = "RESERVED 18446744073709551615 0 tube=" + strings.Repeat("x", MaxTube) +
		" reserves=4294967295 timeouts=4294967295 age=18446744073709551615 left=4294967295 ttr=4294967295 pri=4294967295\r\n"
)

func TestFacts(t *testing.T) {
	f, end := parseFacts([]byte("pri  tube left "), 0)
	if end >= 0 && Facts(f).String() != "pri tube left" {
		t.Errorf("%q, %d", Facts(f), end)
	}
	var r Reply
	if n, err := ParseReply([]byte(longestLine+"\r\n"), &r); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	var got JobStats
	if !ParseFacts(r.Facts, &got) || got != longestJob {
		t.Errorf("%+v", got)
	}
	if !ParseFacts([]byte("new=x reserves=2"), &got) || got.Reserves != 2 || got.Timeouts != math.MaxUint32 {
		t.Errorf("%+v: want unknown keys skipped and missing keys unchanged", got)
	}
	for _, bad := range []string{"tube", "tube=", "tube=-x", "reserves=", "reserves=-1", "ttr=x", "pri=1x", "a=1 b"} {
		if ParseFacts([]byte(bad), &got) {
			t.Errorf("%q is accepted: %+v", bad, got)
		}
	}
}

func TestReplies(t *testing.T) {
	seen := map[Word]bool{}
	for _, tc := range replyTests {
		seen[tc.want.Kind] = true
		if string(tc.bytes) != tc.text {
			t.Errorf("appends %q, want %q", tc.bytes, tc.text)
		}
		if word := tc.want.Kind.String(); !strings.HasPrefix(tc.text, word) {
			t.Errorf("%q starts with %q", tc.text, word)
		}
		in := append(tc.bytes, "NEXT 1\r\n"...)
		for i := range len(tc.text) {
			var r Reply
			if n, err := ParseReply(in[:i:i], &r); n != 0 || err != nil {
				t.Errorf("%q: %d, %v", in[:i], n, err)
			}
		}
		var got Reply
		n, err := ParseReply(in, &got)
		if n != len(tc.text) || err != nil {
			t.Errorf("%q: %d, %v", tc.text, n, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.text, diff)
		}
		if got.Body != nil && cap(got.Body) != len(got.Body) {
			t.Errorf("%q: the body can be extended into the next reply", tc.text)
		}
	}
	for w := Word(1); w < numWords; w++ {
		if !seen[w] {
			t.Errorf("no test of %v", w)
		}
	}
}

func TestParseReplyErrors(t *testing.T) {
	for _, in := range []string{
		"\r\n", "x\r\n", "HELLO\r\n", "inserted 1\r\n", " DELETED\r\n",
		"DELETED \r\n", "DELETED 1\r\n", "DELETEDX\r\n", "DELETE\r\n", "NOT_FOUND_\r\n",
		"INSERTED\r\n", "INSERTED \r\n", "INSERTED x\r\n", "INSERTED  1\r\n", "INSERTED 1 \r\n", "INSERTED 1 2\r\n",
		"INSERTED -1\r\n", "INSERTED 18446744073709551616\r\n",
		"FLUSHED\r\n", "MOVED x\r\n", "BURIED x\r\n", "KICKED x\r\n", "WATCHING\r\n",
		"USING\r\n", "USING \r\n", "USING -a\r\n", "USING a b\r\n",
		"OK \r\n", "OK x\r\n", "OK -1\r\n", "OK 2147483647\r\n", "OK 1\r\nabcd",
		"RESERVED 1\r\n", "RESERVED 1 \r\n", "RESERVED 1 x\r\n", "RESERVED 1x2\r\n", "RESERVED x 1\r\na\r\n", "FOUND 1 1 1\r\na\r\n",
		"RESERVED 1 1\r\nabc\r\n", "RESERVED 1 1 =x\r\na\r\n", "RESERVED 1 x=1 1\r\n",
		"DELETED_BATCH 1\r\n", "DELETED_BATCH 1 x\r\n", "DELETED_BATCH 1 1 1\r\n", "RESERVED_BATCH\r\n", "RESERVED_BATCH 1 1\r\n",
		strings.Repeat("x", MaxLine), "RESERVED " + strings.Repeat("1", MaxLongLine),
	} {
		var r Reply
		if n, err := ParseReply([]byte(in), &r); n != 0 || !errors.Is(err, ErrReply) {
			t.Errorf("%.40q: %d, %v, %+v", in, n, err, r)
		}
	}
}

// Append functions keep the existing bytes of the buffer, even if they write the line of
// a reply after its data.
func TestAppendAppends(t *testing.T) {
	for _, tc := range replyTests {
		if !bytes.HasSuffix(tc.bytes, []byte(crlf)) {
			t.Errorf("%q does not end with its line", tc.bytes)
		}
	}
	before := []byte("DELETED\r\n")
	got := AppendJobStats(AppendTubeStats(AppendStats(before, &ServerStats{}), &TubeStats{}), &JobStats{}, Compat113)
	var r Reply
	var kinds []Word
	for len(got) > 0 {
		n, err := ParseReply(got, &r)
		if n == 0 {
			t.Fatal(err)
		}
		got = got[n:]
		kinds = append(kinds, r.Kind)
	}
	if want := []Word{Deleted, OK, OK, OK}; !cmp.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}
