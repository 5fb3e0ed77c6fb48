package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Client commands have the documented form, and the parser returns the same commands.
func TestClientCommands(t *testing.T) {
	long := strings.Repeat("x", MaxTube)
	for _, tc := range []struct {
		text string
		want Command
	}{
		{"put 1 2 3 4\r\na\r\nb\r\n", Command{Op: Put, Pri: 1, Delay: 2, TTR: 3, Body: []byte("a\r\nb")}},
		{"put 4294967295 0 0 0\r\n\r\n", Command{Op: Put, Pri: math.MaxUint32, Body: []byte{}}},
		{"list-jobs t ready 7\r\n", Command{Op: ListJobs, Tube: []byte("t"), State: StateReady, Count: 7}},
		{"list-jobs t reserved 7 1f.a\r\n", Command{Op: ListJobs, Tube: []byte("t"), State: StateReserved, Count: 7, Text: []byte("1f.a")}},
		{"flush-tube t\r\n", Command{Op: FlushTube, Tube: []byte("t")}},
		{"flush-tube t buried 9\r\n", Command{Op: FlushTube, Tube: []byte("t"), State: StateBuried, Count: 9}},
		{"move-jobs t u delayed\r\n", Command{Op: MoveJobs, Tube: []byte("t"), Text: []byte("u"), State: StateDelayed}},
		{"caps\r\n", Command{Op: Caps}},
		{"want\r\n", Command{Op: Want}},
		{"want ttr left age timeouts reserves tube pri\r\n", Command{Op: Want, Count: 0x7123456}},
		{"reserve-batch 10\r\n", Command{Op: ReserveBatch, Count: 10}},
		{"reserve-batch 1000 7\r\n", Command{Op: ReserveBatch, Count: 1000, Timeout: 7}},
		{"delete-batch 7 8\r\n", Command{Op: DeleteBatch, Text: []byte("7 8")}},
		{"note 7 a b\r\n", Command{Op: Note, ID: 7, Text: []byte("a b")}},
		{"auth s3cret\r\n", Command{Op: Auth, Text: []byte("s3cret")}},
		{"reserve\r\n", Command{Op: Reserve}},
		{"reserve-with-timeout 2147483647\r\n", Command{Op: ReserveTimeout, Timeout: MaxTimeout}},
		{"reserve-job 7\r\n", Command{Op: ReserveJob, ID: 7}},
		{"delete 18446744073709551615\r\n", Command{Op: Delete, ID: math.MaxUint64}},
		{"release 7 8 9\r\n", Command{Op: Release, ID: 7, Pri: 8, Delay: 9}},
		{"bury 7 8\r\n", Command{Op: Bury, ID: 7, Pri: 8}},
		{"touch 7\r\n", Command{Op: Touch, ID: 7}},
		{"kick 100\r\n", Command{Op: Kick, Count: 100}},
		{"kick-job 7\r\n", Command{Op: KickJob, ID: 7}},
		{"peek 7\r\n", Command{Op: Peek, ID: 7}},
		{"peek-ready\r\n", Command{Op: PeekReady}},
		{"peek-delayed\r\n", Command{Op: PeekDelayed}},
		{"peek-buried\r\n", Command{Op: PeekBuried}},
		{"use mail\r\n", Command{Op: Use, Tube: []byte("mail")}},
		{"watch " + long + "\r\n", Command{Op: Watch, Tube: []byte(long)}},
		{"ignore mail\r\n", Command{Op: Ignore, Tube: []byte("mail")}},
		{"pause-tube mail 60\r\n", Command{Op: PauseTube, Tube: []byte("mail"), Delay: 60}},
		{"list-tubes\r\n", Command{Op: ListTubes}},
		{"list-tube-used\r\n", Command{Op: ListTubeUsed}},
		{"list-tubes-watched\r\n", Command{Op: ListTubesWatched}},
		{"stats\r\n", Command{Op: Stats}},
		{"stats-job 7\r\n", Command{Op: StatsJob, ID: 7}},
		{"stats-tube mail\r\n", Command{Op: StatsTube, Tube: []byte("mail")}},
		{"quit\r\n", Command{Op: Quit}},
	} {
		p := Parser{MaxBody: DefaultMaxBody, Auth: true}
		tc.want.Counted = true
		got, left := parseAll(t, &p, []byte(tc.text))
		if diff := cmp.Diff([]Command{tc.want}, got); diff != "" || len(left) > 0 {
			t.Errorf("%q: left %q (-want +got)\n%s", tc.text, left, diff)
		}
		if again := AppendCommand([]byte("before"), &tc.want); string(again) != "before"+tc.text {
			t.Errorf("AppendCommand returns %q, want the existing bytes and %q", again, tc.text)
		}
	}
}
