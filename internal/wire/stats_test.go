package wire

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"
)

func okReply(data string) string {
	return "OK " + strconv.Itoa(len(data)) + "\r\n" + data + "\r\n"
}

func checkReply(t *testing.T, got []byte, data string) {
	t.Helper()
	if want := okReply(data); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAppendStats(t *testing.T) {
	s := ServerStats{
		Urgent: 1, Ready: 2, Reserved: 3, Delayed: 4, Buried: 5,
		Timeouts: 28, TotalJobs: 29, MaxBody: 65535, Tubes: 31, Connections: 32, Producers: 33, Workers: 34, Waiting: 35,
		TotalConnections: 36, PID: 37,
		User: 3*time.Second + 45678*time.Microsecond, System: 999999999 * time.Nanosecond, Uptime: 41999 * time.Millisecond,
		OldestSegment: 42, CurrentSegment: 43, RecordsMigrated: 44, RecordsWritten: 45, SegmentSize: 10485760,
		Draining: true, Instance: 0x00fbf38f452c1dc9, Hostname: "vm", OS: "#1 SMP", Platform: "x86_64",
	}
	for op := range s.Commands {
		s.Commands[op] = 100 + uint64(op)
	}
	const want = `---
current-jobs-urgent: 1
current-jobs-ready: 2
current-jobs-reserved: 3
current-jobs-delayed: 4
current-jobs-buried: 5
cmd-put: 101
cmd-peek: 102
cmd-peek-ready: 103
cmd-peek-delayed: 104
cmd-peek-buried: 105
cmd-reserve: 108
cmd-reserve-with-timeout: 106
cmd-delete: 109
cmd-release: 110
cmd-use: 118
cmd-watch: 119
cmd-ignore: 120
cmd-bury: 111
cmd-kick: 112
cmd-touch: 114
cmd-stats: 117
cmd-stats-job: 115
cmd-stats-tube: 116
cmd-list-tubes: 123
cmd-list-tube-used: 122
cmd-list-tubes-watched: 121
cmd-pause-tube: 125
job-timeouts: 28
total-jobs: 29
max-job-size: 65535
current-tubes: 31
current-connections: 32
current-producers: 33
current-workers: 34
current-waiting: 35
total-connections: 36
pid: 37
version: "1.13"
rusage-utime: 3.045678
rusage-stime: 0.999999
uptime: 41
binlog-oldest-index: 42
binlog-current-index: 43
binlog-records-migrated: 44
binlog-records-written: 45
binlog-max-size: 10485760
draining: true
id: 00fbf38f452c1dc9
hostname: "vm"
os: "#1 SMP"
platform: "x86_64"
`
	checkReply(t, AppendStats(nil, &s), want)
	if lines := strings.Count(want, "\n"); lines != 1+51 {
		t.Errorf("%d lines, want 51 keys", lines)
	}
	s.Extra = []Stat{{Key: "beanpole-version", Value: "0.1", Quoted: true}, {Key: "cmd-kick-job", Value: "7"}}
	grown := want + "beanpole-version: \"0.1\"\ncmd-kick-job: 7\n"
	checkReply(t, AppendStats(nil, &s), grown)

	s.Compat = Compat112
	checkReply(t, AppendStats(nil, &s), strings.Replace(strings.ReplaceAll(grown, `"`, ""), "version: 1.13", `version: "1.12"`, 1))
}

// Before version 1.13, tubes and names have no quotes.
func TestStatsBefore113(t *testing.T) {
	for _, got := range [][]byte{
		AppendTubeStats(nil, &TubeStats{Compat: Compat112, Name: "mail"}),
		AppendJobStats(nil, &JobStats{Tube: "mail"}, Compat112),
	} {
		if !bytes.Contains(got, []byte(": mail\n")) || bytes.ContainsRune(got, '"') {
			t.Errorf("quotes: %s", got)
		}
	}
}

func TestAppendTubeStats(t *testing.T) {
	checkReply(t, AppendTubeStats(nil, &TubeStats{
		Name: "mail", Urgent: 1, Ready: 2, Reserved: 3, Delayed: 4, Buried: 5, TotalJobs: 6,
		Using: 7, Watching: 8, Waiting: 9, Deletes: 10, Pauses: 11, Pause: 12, PauseLeft: 13,
	}), `---
name: "mail"
current-jobs-urgent: 1
current-jobs-ready: 2
current-jobs-reserved: 3
current-jobs-delayed: 4
current-jobs-buried: 5
total-jobs: 6
current-using: 7
current-watching: 8
current-waiting: 9
cmd-delete: 10
cmd-pause-tube: 11
pause: 12
pause-time-left: 13
`)
}

func TestAppendJobStats(t *testing.T) {
	checkReply(t, AppendJobStats(nil, &JobStats{
		ID: 1, Tube: "mail", State: "delayed", Pri: 5, Age: 3, Delay: 6, TTR: 7, TimeLeft: 4, File: 2,
		Reserves: 8, Timeouts: 9, Releases: 10, Buries: 11, Kicks: 12,
	}, Compat113), `---
id: 1
tube: "mail"
state: delayed
pri: 5
age: 3
delay: 6
ttr: 7
time-left: 4
file: 2
reserves: 8
timeouts: 9
releases: 10
buries: 11
kicks: 12
`)
}
