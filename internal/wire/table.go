package wire

import (
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// Op is a command. The order is the one in which beanstalkd compares verbs. The order
// matters because a line can start with several verbs.
type Op uint8

const (
	Unknown Op = iota
	Put
	Peek
	PeekReady
	PeekDelayed
	PeekBuried
	ReserveTimeout
	ReserveJob
	Reserve
	Delete
	Release
	Bury
	Kick
	KickJob
	Touch
	StatsJob
	StatsTube
	Stats
	Use
	Watch
	Ignore
	ListTubesWatched
	ListTubeUsed
	ListTubes
	Quit
	PauseTube

	// Commands that beanstalkd lacks.
	ListJobs
	FlushTube
	MoveJobs
	Auth // only if Parser.Auth
	Caps
	Want
	ReserveBatch
	DeleteBatch
	Note
	NumOps // number of commands, not a command
)

// commands is the table of commands, one row per command.
var commands = [NumOps]struct {
	verb    string       // required start of a line, including the space
	args    [maxArgs]arg // arguments, up to the end of the line
	counter string       // key in stats, or empty
	need    rights.Need  // rights that a client needs
	repeat  bool         // see Repeatable
}{
	Unknown:          {verb: "unknown", need: rights.Free},
	Put:              {"put ", args(argPri, argDelay, argTTR, argSize), "cmd-put", rights.Put.On(rights.TubeInUse), once},
	Peek:             {"peek ", args(argID), "cmd-peek", rights.Peek.On(rights.TubeOfJob), again},
	PeekReady:        {"peek-ready", args(), "cmd-peek-ready", rights.Peek.On(rights.TubeInUse), again},
	PeekDelayed:      {"peek-delayed", args(), "cmd-peek-delayed", rights.Peek.On(rights.TubeInUse), again},
	PeekBuried:       {"peek-buried", args(), "cmd-peek-buried", rights.Peek.On(rights.TubeInUse), again},
	ReserveTimeout:   {"reserve-with-timeout ", args(argTimeout, argIgnored), "cmd-reserve-with-timeout", rights.Reserve.On(rights.WatchedTubes), again},
	ReserveJob:       {"reserve-job ", args(argID), "cmd-reserve-job", rights.Reserve.On(rights.TubeOfJob), again},
	Reserve:          {"reserve", args(), "cmd-reserve", rights.Reserve.On(rights.WatchedTubes), again},
	Delete:           {"delete ", args(argID), "cmd-delete", (rights.Reserve | rights.Manage).AnyOn(rights.TubeOfJob), once},
	Release:          {"release ", args(argID, argPri, argDelay), "cmd-release", rights.Reserve.On(rights.TubeOfJob), once},
	Bury:             {"bury ", args(argID, argPri), "cmd-bury", rights.Reserve.On(rights.TubeOfJob), once},
	Kick:             {"kick ", args(argCount, argIgnored), "cmd-kick", rights.Manage.On(rights.TubeInUse), once},
	KickJob:          {"kick-job ", args(argID), "cmd-kick-job", rights.Manage.On(rights.TubeOfJob), once},
	Touch:            {"touch ", args(argID), "cmd-touch", rights.Reserve.On(rights.TubeOfJob), again},
	StatsJob:         {"stats-job ", args(argID), "cmd-stats-job", (rights.Reserve | rights.Stats).AnyOn(rights.TubeOfJob), again},
	StatsTube:        {"stats-tube ", args(argTube), "cmd-stats-tube", rights.Stats.On(rights.NamedTube), again},
	Stats:            {"stats", args(), "cmd-stats", rights.Stats.On(rights.SomeTube), again},
	Use:              {"use ", args(argTube), "cmd-use", (rights.Put | rights.Peek | rights.Manage | rights.Stats).AnyOn(rights.NamedTube), again},
	Watch:            {"watch ", args(argTube), "cmd-watch", rights.Reserve.On(rights.NamedTube), again},
	Ignore:           {"ignore ", args(argTube), "cmd-ignore", rights.Free, again},
	ListTubesWatched: {"list-tubes-watched", args(), "cmd-list-tubes-watched", rights.Free, again},
	ListTubeUsed:     {"list-tube-used", args(), "cmd-list-tube-used", rights.Free, again},
	ListTubes:        {"list-tubes", args(), "cmd-list-tubes", rights.Stats.On(rights.SomeTube), again},
	Quit:             {"quit", args(argIgnored), "", rights.Free, once},
	PauseTube:        {"pause-tube", args(argLooseTube, argDelay), "cmd-pause-tube", rights.Manage.On(rights.NamedTube), again},
	ListJobs:         {"list-jobs ", args(argName, argState, optional|argLimit, optional|argCursor), "cmd-list-jobs", rights.Stats.On(rights.NamedTube), again},
	FlushTube:        {"flush-tube ", args(argName, optional|argIdle, optional|argLimit), "cmd-flush-tube", rights.Manage.On(rights.NamedTube), once},
	MoveJobs:         {"move-jobs ", args(argName, argOther, argIdle, optional|argLimit), "cmd-move-jobs", rights.Manage.On(rights.TwoTubes), once},
	Auth:             {"auth ", args(argToken), "", rights.Free, once},
	Caps:             {"caps", args(), "", rights.Free, again},
	Want:             {"want", args(argFacts), "", rights.Free, again},
	ReserveBatch:     {"reserve-batch ", args(argBatch, optional|argWait), "cmd-reserve-batch", rights.Reserve.On(rights.WatchedTubes), again},
	DeleteBatch:      {"delete-batch ", args(argIDs), "cmd-delete-batch", (rights.Reserve | rights.Manage).AnyOn(rights.TubeOfJob), once},
	Note:             {"note ", args(argID, argNote), "cmd-note", rights.Reserve.On(rights.TubeOfJob), once},
}

// Whether a command can be repeated; see Repeatable.
const (
	once  = false
	again = true
)

// arg is the kind of an argument, or of the end of the arguments.
type arg uint8

const (
	argEnd       arg = iota // the end of the line
	argIgnored              // any text, which is ignored
	argID                   // u64
	argPri                  // u32
	argDelay                // u32, seconds
	argTTR                  // u32, seconds
	argTimeout              // u32, seconds, at most MaxTimeout
	argSize                 // u32, bytes of the body that follows the line
	argCount                // u32, parsed like C's strtoul
	argTube                 // a valid name, directly after the verb, up to the end of the line
	argToken                // the rest of the line
	argLooseTube            // spaces, then name characters; the name is checked last

	// Words after spaces.
	argName   // a valid name
	argOther  // another valid name
	argState  // state of jobs
	argIdle   // state of unreserved jobs
	argLimit  // u32, at least 1
	argCursor // a cursor
	argBatch  // number of jobs, 1 to MaxBatch
	argWait   // u32 in seconds, at most MaxTimeout

	// Arguments up to the end of the line.
	argFacts // see ParseFacts
	argIDs   // ids of jobs, 1 to MaxBatch; see NextID
	argNote  // a text that ValidNote accepts
)

const maxArgs = 4

// optional marks a word that can be omitted together with all later arguments.
const optional arg = 1 << 7

// args exists because an array literal in a row would need its length.
func args(a ...arg) (row [maxArgs]arg) {
	copy(row[:], a)
	return row
}

// String returns the verb.
func (o Op) String() string { return strings.TrimSuffix(commands[o].verb, " ") }

// Counter returns the key of the command's counter in stats, or "" if there is none.
func (o Op) Counter() string { return commands[o].counter }

// Need returns the rights that a client needs for the command.
func (o Op) Need() rights.Need { return commands[o].need }

// Repeatable reports whether a client can send the command again when the outcome of the
// first attempt is unknown. Executing it twice has the same effect as executing it once,
// or the effect of the first execution ended with its connection.
func (o Op) Repeatable() bool { return commands[o].repeat }

// maxLine returns the maximum length of the command's line. beanstalkd treats a line of
// more than MaxLine bytes as too long, with an unknown verb.
func (o Op) maxLine() int {
	switch args := &commands[o].args; {
	case args[0] == argName, args[1] == argNote:
		return MaxLongLine
	case args[0] == argIDs:
		return MaxBatchLine
	}
	return MaxLine
}

// Own lists the commands that beanstalkd lacks, as caps reports them.
var Own = func() (own []Op) {
	for op := PauseTube + 1; op < NumOps; op++ {
		if op != Auth && op != Caps {
			own = append(own, op)
		}
	}
	return own
}()

// A verb is the first word of a command line.
type verb struct {
	text string
	op   Op
}

// byFirst lists the commands by the first byte of their verb, in table order. A verb that
// starts with another verb precedes that verb: reserve-batch precedes reserve.
var byFirst = func() (t [256][]verb) {
	for op := Unknown + 1; op < NumOps; op++ {
		text := commands[op].verb
		verbs := &t[text[0]]
		at := slices.IndexFunc(*verbs, func(v verb) bool { return strings.HasPrefix(text, v.text) })
		if at < 0 {
			at = len(*verbs)
		}
		*verbs = slices.Insert(*verbs, at, verb{text, op})
	}
	return t
}()

// recognize returns the command of a line and the index of its arguments. It first
// compares the end of the verb, where nearly all verbs differ.
func recognize(line []byte) (op Op, args int) {
	if len(line) == 0 {
		return Unknown, 0
	}
	for _, v := range byFirst[line[0]] {
		n := len(v.text)
		if len(line) >= n && line[n-1] == v.text[n-1] && string(line[:n]) == v.text {
			return v.op, n
		}
	}
	return Unknown, 0
}
