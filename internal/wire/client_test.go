package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a client appends is what beanstalkd documents, and the parser makes the
// same command of it.
func TestClientCommands(t *testing.T) {
	long := strings.Repeat("x", MaxTube)
	for _, tc := range []struct {
		bytes []byte
		text  string
		want  Command
	}{
		{AppendPut(nil, 1, 2, 3, []byte("a\r\nb")), "put 1 2 3 4\r\na\r\nb\r\n",
			Command{Op: Put, Pri: 1, Delay: 2, TTR: 3, Body: []byte("a\r\nb")}},
		{AppendPut(nil, math.MaxUint32, 0, 0, nil), "put 4294967295 0 0 0\r\n\r\n",
			Command{Op: Put, Pri: math.MaxUint32, Body: []byte{}}},
		{AppendListJobs(nil, "t", StateReady, 7, ""), "list-jobs t ready 7\r\n", Command{Op: ListJobs, Tube: []byte("t"), State: StateReady, Count: 7}},
		{AppendListJobs(nil, "t", StateReserved, 7, "1f.a"), "list-jobs t reserved 7 1f.a\r\n",
			Command{Op: ListJobs, Tube: []byte("t"), State: StateReserved, Count: 7, Text: []byte("1f.a")}},
		{AppendFlushTube(nil, "t", AnyState, 0), "flush-tube t\r\n", Command{Op: FlushTube, Tube: []byte("t")}},
		{AppendFlushTube(nil, "t", StateBuried, 9), "flush-tube t buried 9\r\n", Command{Op: FlushTube, Tube: []byte("t"), State: StateBuried, Count: 9}},
		{AppendMoveJobs(nil, "t", "u", StateDelayed, 0), "move-jobs t u delayed\r\n", Command{Op: MoveJobs, Tube: []byte("t"), Text: []byte("u"), State: StateDelayed}},
		{AppendCommand(nil, &Command{Op: Caps}), "caps\r\n", Command{Op: Caps}},
		{AppendCommand(nil, &Command{Op: Want}), "want\r\n", Command{Op: Want}},
		{AppendCommand(nil, &Command{Op: Want, Count: 0x7123456}), "want ttr left age timeouts reserves tube pri\r\n", Command{Op: Want, Count: 0x7123456}},
		{AppendCommand(nil, &Command{Op: ReserveBatch, Count: 10}), "reserve-batch 10\r\n", Command{Op: ReserveBatch, Count: 10}},
		{AppendCommand(nil, &Command{Op: ReserveBatch, Count: 1000, Timeout: 7}), "reserve-batch 1000 7\r\n", Command{Op: ReserveBatch, Count: 1000, Timeout: 7}},
		{AppendCommand(nil, &Command{Op: DeleteBatch, Text: AppendID(AppendID(nil, 7), 8)}), "delete-batch 7 8\r\n", Command{Op: DeleteBatch, Text: []byte("7 8")}},
		{AppendCommand(nil, &Command{Op: Note, ID: 7, Text: []byte("a b")}), "note 7 a b\r\n", Command{Op: Note, ID: 7, Text: []byte("a b")}},
		{AppendAuth(nil, "s3cret"), "auth s3cret\r\n", Command{Op: Auth, Text: []byte("s3cret")}},
		{AppendReserve(nil), "reserve\r\n", Command{Op: Reserve}},
		{AppendReserveTimeout(nil, MaxTimeout), "reserve-with-timeout 2147483647\r\n",
			Command{Op: ReserveTimeout, Timeout: MaxTimeout}},
		{appendByID(nil, ReserveJob, 7), "reserve-job 7\r\n", Command{Op: ReserveJob, ID: 7}},
		{AppendDelete(nil, math.MaxUint64), "delete 18446744073709551615\r\n", Command{Op: Delete, ID: math.MaxUint64}},
		{AppendRelease(nil, 7, 8, 9), "release 7 8 9\r\n", Command{Op: Release, ID: 7, Pri: 8, Delay: 9}},
		{AppendBury(nil, 7, 8), "bury 7 8\r\n", Command{Op: Bury, ID: 7, Pri: 8}},
		{AppendTouch(nil, 7), "touch 7\r\n", Command{Op: Touch, ID: 7}},
		{AppendKick(nil, 100), "kick 100\r\n", Command{Op: Kick, Count: 100}},
		{appendByID(nil, KickJob, 7), "kick-job 7\r\n", Command{Op: KickJob, ID: 7}},
		{AppendPeek(nil, 7), "peek 7\r\n", Command{Op: Peek, ID: 7}},
		{AppendPeekReady(nil), "peek-ready\r\n", Command{Op: PeekReady}},
		{appendVerb(nil, PeekDelayed), "peek-delayed\r\n", Command{Op: PeekDelayed}},
		{appendVerb(nil, PeekBuried), "peek-buried\r\n", Command{Op: PeekBuried}},
		{AppendUse(nil, "mail"), "use mail\r\n", Command{Op: Use, Tube: []byte("mail")}},
		{AppendWatch(nil, long), "watch " + long + "\r\n", Command{Op: Watch, Tube: []byte(long)}},
		{AppendIgnore(nil, "mail"), "ignore mail\r\n", Command{Op: Ignore, Tube: []byte("mail")}},
		{AppendPauseTube(nil, "mail", 60), "pause-tube mail 60\r\n",
			Command{Op: PauseTube, Tube: []byte("mail"), Delay: 60}},
		{AppendListTubes(nil), "list-tubes\r\n", Command{Op: ListTubes}},
		{appendVerb(nil, ListTubeUsed), "list-tube-used\r\n", Command{Op: ListTubeUsed}},
		{appendVerb(nil, ListTubesWatched), "list-tubes-watched\r\n", Command{Op: ListTubesWatched}},
		{AppendStatsCommand(nil), "stats\r\n", Command{Op: Stats}},
		{appendByID(nil, StatsJob, 7), "stats-job 7\r\n", Command{Op: StatsJob, ID: 7}},
		{AppendStatsTubeCommand(nil, "mail"), "stats-tube mail\r\n", Command{Op: StatsTube, Tube: []byte("mail")}},
		{appendVerb(nil, Quit), "quit\r\n", Command{Op: Quit}},
	} {
		if string(tc.bytes) != tc.text {
			t.Errorf("%v: appends %q, want %q", tc.want.Op, tc.bytes, tc.text)
		}
		p := Parser{MaxBody: DefaultMaxBody, Auth: true}
		tc.want.Counted = true
		got, left := parseAll(t, &p, tc.bytes)
		if diff := cmp.Diff([]Command{tc.want}, got); diff != "" || len(left) > 0 {
			t.Errorf("%q: left %q (-want +got)\n%s", tc.text, left, diff)
		}
		if again := AppendCommand([]byte("before"), &tc.want); string(again) != "before"+tc.text {
			t.Errorf("AppendCommand gives %q, want %q after what was there", again, tc.text)
		}
	}
}
