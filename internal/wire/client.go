package wire

// Each of these functions appends a command as a client sends it, for programs that load
// and test servers; others use AppendCommand. Tube names must be valid; see ValidTube.

// AppendAuth appends an auth, the first command on a connection that must authenticate.
// The command follows beanstalkd-rs; beanstalkd does not recognize it. A token is
// printable ASCII without spaces. With the verb, it must fit in a line.
func AppendAuth(dst []byte, token string) []byte {
	return AppendCommand(dst, &Command{Op: Auth, Text: []byte(token)})
}

// AppendPut appends a put with its body. delay and ttr are in seconds.
func AppendPut(dst []byte, pri, delay, ttr uint32, body []byte) []byte {
	return AppendCommand(dst, &Command{Op: Put, Pri: pri, Delay: delay, TTR: ttr, Body: body})
}

func AppendReserve(dst []byte) []byte {
	return appendVerb(dst, Reserve)
}

// AppendReserveTimeout appends a reserve-with-timeout with 0 to MaxTimeout seconds.
func AppendReserveTimeout(dst []byte, seconds uint32) []byte {
	return AppendCommand(dst, &Command{Op: ReserveTimeout, Timeout: seconds})
}

func AppendDelete(dst []byte, id uint64) []byte {
	return appendByID(dst, Delete, id)
}

// AppendRelease appends a release. delay is in seconds.
func AppendRelease(dst []byte, id uint64, pri, delay uint32) []byte {
	return AppendCommand(dst, &Command{Op: Release, ID: id, Pri: pri, Delay: delay})
}

func AppendBury(dst []byte, id uint64, pri uint32) []byte {
	return AppendCommand(dst, &Command{Op: Bury, ID: id, Pri: pri})
}

func AppendTouch(dst []byte, id uint64) []byte {
	return appendByID(dst, Touch, id)
}

func AppendKick(dst []byte, bound uint32) []byte {
	return AppendCommand(dst, &Command{Op: Kick, Count: bound})
}

func AppendPeek(dst []byte, id uint64) []byte {
	return appendByID(dst, Peek, id)
}

func AppendPeekReady(dst []byte) []byte {
	return appendVerb(dst, PeekReady)
}

func AppendUse(dst []byte, tube string) []byte {
	return appendByTube(dst, Use, tube)
}

func AppendWatch(dst []byte, tube string) []byte {
	return appendByTube(dst, Watch, tube)
}

func AppendIgnore(dst []byte, tube string) []byte {
	return appendByTube(dst, Ignore, tube)
}

// AppendPauseTube appends a pause-tube for a number of seconds.
func AppendPauseTube(dst []byte, tube string, seconds uint32) []byte {
	return AppendCommand(dst, &Command{Op: PauseTube, Tube: []byte(tube), Delay: seconds})
}

func AppendListTubes(dst []byte) []byte {
	return appendVerb(dst, ListTubes)
}

// AppendStatsCommand appends the command; AppendStats appends the reply.
func AppendStatsCommand(dst []byte) []byte {
	return appendVerb(dst, Stats)
}

// AppendStatsTubeCommand appends the command; AppendTubeStats appends the reply.
func AppendStatsTubeCommand(dst []byte, tube string) []byte {
	return appendByTube(dst, StatsTube, tube)
}

// AppendListJobs appends a list-jobs for at most limit jobs after a cursor. limit is at
// least 1. An empty cursor is the start.
func AppendListJobs(dst []byte, tube string, state State, limit uint32, cursor string) []byte {
	return AppendCommand(dst, &Command{Op: ListJobs, Tube: []byte(tube), State: state, Count: limit, Text: []byte(cursor)})
}

// AppendFlushTube appends a flush-tube for at most limit jobs. If limit is 0 or state is
// AnyState, there is no limit.
func AppendFlushTube(dst []byte, tube string, state State, limit uint32) []byte {
	return AppendCommand(dst, &Command{Op: FlushTube, Tube: []byte(tube), State: state, Count: limit})
}

// AppendMoveJobs appends a move-jobs for at most limit jobs. If limit is 0, there is no
// limit.
func AppendMoveJobs(dst []byte, from, to string, state State, limit uint32) []byte {
	return AppendCommand(dst, &Command{Op: MoveJobs, Tube: []byte(from), Text: []byte(to), State: state, Count: limit})
}

func appendVerb(dst []byte, op Op) []byte {
	return AppendCommand(dst, &Command{Op: op})
}

func appendByID(dst []byte, op Op, id uint64) []byte {
	return AppendCommand(dst, &Command{Op: op, ID: id})
}

func appendByTube(dst []byte, op Op, tube string) []byte {
	return AppendCommand(dst, &Command{Op: op, Tube: []byte(tube)})
}
