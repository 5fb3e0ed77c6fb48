package binlog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
)

// show formats a Change as a line. It omits counts that builder sets. Times are in
// seconds.
func show(c engine.Change) string {
	switch c.Kind {
	case engine.LastID:
		return fmt.Sprintf("last %d", c.ID)
	case engine.JobDeleted:
		return fmt.Sprintf("delete %d", c.ID)
	}
	s := fmt.Sprintf("%d %v", c.ID, c.State)
	if c.Kind == engine.JobPut {
		s = fmt.Sprintf("put %s %s %q", s, c.Tube, c.Body)
	}
	if c.State == engine.Delayed {
		s += fmt.Sprintf(" due %d", c.Due/second)
	}
	return s
}

func showAll(changes []engine.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, show(c))
	}
	return lines
}

var zeros = strings.Repeat("\x00", 10000)

// TestRead reads valid and damaged files. In version 7, a full record with the tube
// "mail" and the body "abc" has 93 bytes, and a short one has 84.
func TestRead(t *testing.T) {
	const body = "abc\r\n"
	mail := func(id uint64, fields ...field) *builder {
		return build(7).full("mail", id, stateReady, body, fields...)
	}
	good := func(id uint64) string { return fmt.Sprintf(`put %d ready mail "abc"`, id) }

	for _, tc := range []struct {
		name   string
		files  []*builder
		want   []string
		damage []string
	}{
		{"nothing", nil, nil, nil},
		{"empty files", []*builder{mail(1), {}, {bytes: []byte("\x07\x00\x00")}, {bytes: []byte(zeros)}, build(7), build(7).raw(zeros), {}},
			[]string{good(1), "last 1"},
			[]string{"binlog.2 at 0: no header: only the newest file can lack it; 0 bytes not read",
				"binlog.3 at 0: no header: only the newest file can lack it; 3 bytes not read",
				"binlog.4 at 0: no header: only the newest file can lack it; 10000 bytes not read"}},
		{"the newest file short", []*builder{mail(1), {bytes: []byte("\x07\x00\x00")}}, []string{good(1), "last 1"}, nil},
		{"the newest file of zeros", []*builder{mail(1), {bytes: []byte(zeros)}}, []string{good(1), "last 1"}, nil},
		{"every state", []*builder{
			build(7).full("a", 1, stateReady, body).full("b", 2, stateReserved, body).full("c", 3, stateBuried, body).
				full("d", 4, stateDelayed, "\r\n"),
			build(7).short(1, stateBuried).short(2, stateDelayed).short(3, stateReady).short(4, stateDeleted),
		}, []string{
			`put 1 ready a "abc"`, `put 2 ready b "abc"`, `put 3 buried c "abc"`, `put 4 delayed d "" due 1000`,
			"1 buried", "2 delayed due 1000", "3 ready", "delete 4", "last 4",
		}, nil},
		{"a later copy", []*builder{mail(1), build(7).short(1, stateBuried), build(7).full("mail", 1, stateDelayed, body)},
			[]string{good(1), "1 buried", `put 1 delayed mail "abc" due 1000`, "last 1"}, nil},
		{"ids of short records count", []*builder{mail(3).short(8, stateDeleted).short(6, stateReady)},
			[]string{good(3), "delete 8", "6 ready", "last 8"}, nil},
		{"longest name", []*builder{build(7).full(strings.Repeat("x", 200), 1, stateReady, body)},
			[]string{`put 1 ready ` + strings.Repeat("x", 200) + ` "abc"`, "last 1"}, nil},
		{"bodies of zeros and line ends", []*builder{build(7).full("a", 1, stateReady, "\x00\x00\x00\r\n").full("a", 2, stateReady, "\r\n\r\n")},
			[]string{`put 1 ready a "\x00\x00\x00"`, `put 2 ready a "\r\n"`, "last 2"}, nil},
		{"less than a second of ttr", []*builder{mail(1, field{atTTR, uint64(0)})}, []string{good(1), "last 1"}, nil},
		{"stale deadline", []*builder{mail(1, field{atDeadline, int64(-1)})}, []string{good(1), "last 1"}, nil},

		{"zero fill", []*builder{mail(1).raw(zeros)}, []string{good(1), "last 1"}, nil},
		{"short zero fill", []*builder{mail(1).raw(zeros[:3]), mail(2).raw(zeros[:83]), build(7).raw(zeros[:84])},
			[]string{good(1), good(2), "last 2"}, nil},
		{"data after zeros", []*builder{mail(1).raw(zeros + "x"), mail(2)},
			[]string{good(1), good(2), "last 2"},
			[]string{"binlog.1 at 97: record without an id; 10001 bytes not read"}},
		{"data after a few zeros", []*builder{mail(1).raw("\x00\x00\x00x")}, []string{good(1), "last 1"},
			[]string{"binlog.1 at 97: 4 bytes are less than a record; 4 bytes not read"}},
		{"data without header", []*builder{build(0).raw(zeros[:96] + "x")}, nil,
			[]string{"binlog.1 at 0: unknown version 0; 101 bytes not read"}},
		{"unknown versions", []*builder{build(5), build(7 << 24), mail(1)}, []string{good(1), "last 1"},
			[]string{"binlog.1 at 0: unknown version 5; 4 bytes not read", "binlog.2 at 0: unknown version 117440512; 4 bytes not read"}},

		{"length of the name", []*builder{mail(1).raw("\xc9\x00\x00\x00" + zeros), mail(2).raw("\xff\xff\xff\xff" + zeros)},
			[]string{good(1), good(2), "last 2"},
			[]string{"binlog.1 at 97: invalid length of a tube name: 201; 10004 bytes not read",
				"binlog.2 at 97: invalid length of a tube name: 4294967295; 10004 bytes not read"}},
		{"names", []*builder{build(7).full("-a", 1, stateReady, body), build(7).full("a b", 1, stateReady, body), build(7).full("a\x00", 1, stateReady, body)},
			nil,
			[]string{`binlog.1 at 4: invalid tube name "-a"; 91 bytes not read`,
				`binlog.2 at 4: invalid tube name "a b"; 92 bytes not read`,
				`binlog.3 at 4: invalid tube name "a\x00"; 91 bytes not read`}},
		{"states", []*builder{mail(1, field{atState, uint8(5)}), mail(2).short(2, 255), build(7).full("mail", 3, stateDeleted, body)},
			[]string{good(2), "last 2"},
			[]string{"binlog.1 at 4: job 1 has unknown state 5; 93 bytes not read",
				"binlog.2 at 97: job 2 has unknown state 255; 84 bytes not read",
				"binlog.3 at 4: full record of deleted job 3; 93 bytes not read"}},
		{"ids", []*builder{mail(0), mail(math.MaxInt64+1).full("mail", 1, stateReady, body)},
			[]string{good(1), "last 1"},
			[]string{"binlog.1 at 4: record with a tube but without an id; 93 bytes not read",
				"binlog.2 at 4: job 9223372036854775808 dropped: implausible id"}},
		{"a stray id", []*builder{mail(1).short(1<<53, stateDeleted).short(1<<63+5, 0).short(math.MaxUint64, stateReady).short(1<<53-1, stateDeleted)},
			[]string{good(1), "delete 9007199254740991", "last 9007199254740991"},
			[]string{"binlog.1 at 97: job 9007199254740992 dropped: implausible id",
				"binlog.1 at 181: job 9223372036854775813 dropped: implausible id",
				"binlog.1 at 265: job 18446744073709551615 dropped: implausible id"}},
		{"ids out of all proportion", []*builder{mail(1<<60).short(1<<60, stateReady)},
			nil,
			[]string{"binlog.1 at 4: job 1152921504606846976 dropped: implausible id",
				"binlog.1 at 97: job 1152921504606846976 dropped: implausible id"}},
		{"times", []*builder{mail(1, field{atDelay, int64(-1)}), mail(1, field{atTTR, uint64(1<<32) * 1e9}), mail(1, field{atCreated, int64(-1)}),
			build(7).full("mail", 1, stateDelayed, body, field{atDeadline, int64(-1)}),
			mail(2, field{atDelay, uint64(1<<32)*1e9 - 1}), mail(3, field{atCreated, int64(5e18)})},
			[]string{good(2), "last 2"},
			[]string{"binlog.1 at 4: job 1 has an impossible delay; 93 bytes not read",
				"binlog.2 at 4: job 1 has an impossible ttr; 93 bytes not read",
				"binlog.3 at 4: job 1 has an impossible time of creation; 93 bytes not read",
				"binlog.4 at 4: job 1 has an impossible deadline; 93 bytes not read",
				"binlog.6 at 4: job 3 has an impossible time of creation; 93 bytes not read"}},
		{"sizes", []*builder{mail(1, field{atSize, int32(1)}), mail(1, field{atSize, int32(-1)}), mail(1, field{atSize, int32(maxBody + 3)}),
			mail(1, field{atSize, int32(maxBody + 2)}), mail(1, field{atSize, int32(6)})},
			nil,
			[]string{"binlog.1 at 4: job 1 has a body of 1 bytes; 93 bytes not read",
				"binlog.2 at 4: job 1 has a body of -1 bytes; 93 bytes not read",
				"binlog.3 at 4: job 1 has a body of 1073741827 bytes; 93 bytes not read",
				"binlog.4 at 4: record of at least 1073741914 bytes ends after 93; 93 bytes not read",
				"binlog.5 at 4: record of at least 94 bytes ends after 93; 93 bytes not read"}},

		{"body that was not written", []*builder{mail(1).full("mail", 2, stateReady, zeros).full("mail", 3, stateReady, body)},
			[]string{good(1), "2 ready", good(3), "last 3"},
			[]string{"binlog.1 at 97: job 2 dropped: its body of 10000 bytes does not end with CR LF"}},
		{"copy without its body", []*builder{mail(1), build(7).full("mail", 1, stateBuried, "abc\x00\x00")},
			[]string{good(1), "1 buried", "last 1"},
			[]string{"binlog.2 at 4: job 1 dropped: its body of 5 bytes does not end with CR LF"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var files [][]byte
			for _, b := range tc.files {
				files = append(files, b.bytes)
			}
			changes, report := readChanges(t, dirOf(t, files...))
			if diff := cmp.Diff(tc.want, showAll(changes)); diff != "" {
				t.Errorf("changes (- want, + got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.damage, report.Damage); diff != "" {
				t.Errorf("damage (- want, + got):\n%s", diff)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	fsys := dirOf(t)
	for _, name := range []string{"lock", "binlog", "binlog.", "binlog.x", "binlog.-3", "binlog. 5", "binlog.+6", "binlog.2147483648", "binlog.007", "a.binlog.1"} {
		addFile(t, fsys, name, nil)
	}
	if names, err := Files(fsys, "log"); len(names) > 0 || err != nil {
		t.Errorf("names only alike: %q, %v", names, err)
	}
	for _, id := range []uint64{10, 9, 2, 3, 6, 2147483647} {
		addFile(t, fsys, fmt.Sprintf("binlog.%d", id), build(7).full("mail", id, stateReady, "\r\n").bytes)
	}
	names, err := Files(fsys, "log")
	want := []string{"binlog.2", "binlog.3", "binlog.6", "binlog.9", "binlog.10", "binlog.2147483647"}
	if !slices.Equal(names, want) || err != nil {
		t.Errorf("Files: %q, %v", names, err)
	}

	changes, report := readChanges(t, fsys)
	for i, id := range []uint64{2, 3, 6, 9, 10, 2147483647} {
		if changes[i].ID != id {
			t.Errorf("change %d is of job %d, want %d", i, changes[i].ID, id)
		}
	}
	if want := []string{"binlog.4 to binlog.5: missing", "binlog.7 to binlog.8: missing", "binlog.11 to binlog.2147483646: missing"}; !slices.Equal(report.Damage, want) {
		t.Errorf("damage %q, want %q", report.Damage, want)
	}
	if _, err := Files(fsys, "none"); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

// Read returns any error of apply or of the file system.
func TestReadErrors(t *testing.T) {
	b := build(7).full("a", 1, stateReady, "\r\n").short(1, stateBuried).bytes
	boom := errors.New("boom")
	calls := 0
	_, err := Read(dirOf(t, b, b), "log", Options{}, func(engine.Change) error {
		calls++
		return boom
	})
	if !errors.Is(err, boom) || calls != 1 {
		t.Errorf("error %v of apply after %d calls", err, calls)
	}

	count := faultfs.New(dirOf(t, b, b), faultfs.Fault{Op: faultfs.Any, N: math.MaxInt})
	readChanges(t, count)
	if count.Seen() < 7 { // one list, and open, size and read for each file
		t.Fatalf("only %d calls seen", count.Seen())
	}
	for n := 1; n <= count.Seen(); n++ {
		fault := faultfs.Fault{Op: faultfs.Any, N: n, How: faultfs.Before, Err: syscall.EIO}
		_, err := Read(faultfs.New(dirOf(t, b, b), fault), "log", Options{}, func(engine.Change) error { return nil })
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: error %v", fault, err)
		}
	}
}
