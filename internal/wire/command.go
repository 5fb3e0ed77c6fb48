package wire

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTimeout is the largest argument of reserve-with-timeout, in seconds.
const MaxTimeout = math.MaxInt32

// MaxBatch is the maximum number of jobs in reserve-batch and delete-batch.
const MaxBatch = 1000

// MaxNote is the maximum length of a note, in bytes.
const MaxNote = 200

const crlf = "\r\n"

// A Command is a parsed command. Op, Fault and Counted are always set. If Fault is None,
// the fields of the command's arguments are set.
type Command struct {
	Op      Op
	Fault   Fault
	Counted bool   // stats counts the command, even if it is invalid
	ID      uint64 // id of the job
	Pri     uint32 // of put, release, bury
	Delay   uint32 // of put, release, pause-tube: in seconds
	TTR     uint32 // of put: in seconds, as sent (0 is not raised to 1)
	Timeout uint32 // of reserve-with-timeout, reserve-batch: in seconds, at most MaxTimeout, or Forever
	Count   uint32 // kick, reserve-batch: the number. list-jobs, flush-tube, move-jobs: the limit, or 0. want: the Facts. FaultNoCRLF, FaultTooBig: bytes of the body
	State   State  // of list-jobs, flush-tube, move-jobs
	Tube    []byte // aliases the input
	Body    []byte // of put: without CR LF; aliases the input
	Text    []byte // auth: the token. list-jobs: the cursor. move-jobs: where to. delete-batch: the ids, see NextID. note: the text. Aliases the input
}

// A Fault is the reason why a command cannot be executed. It determines the reply.
type Fault uint8

const (
	None         Fault = iota
	FaultUnknown       // there is no such verb
	FaultFormat        // the line is too long, contains a NUL, or has invalid arguments
	FaultTooBig        // put: the body exceeds Parser.MaxBody and was skipped
	FaultNoCRLF        // put: no CR LF after the body. As in beanstalkd, the put still uses an id.
	FaultHTTP          // the line belongs to an HTTP request: the connection must be closed; later input is discarded
)

// Word returns the reply to a fault. None and FaultHTTP have no reply.
func (f Fault) Word() Word { return faultWords[f] }

var faultWords = [...]Word{
	None:         0,
	FaultUnknown: UnknownCommand,
	FaultFormat:  BadFormat,
	FaultTooBig:  JobTooBig,
	FaultNoCRLF:  ExpectedCRLF,
}

// parseArgs parses the arguments at line[i] into cmd. It returns the index of their end,
// or a negative number if they are invalid, and the size of the body that follows.
func parseArgs(line []byte, i int, cmd *Command, compat Compat) (end int, size uint32) {
	var v uint64
	for _, a := range &commands[cmd.Op].args {
		switch a {
		case argEnd:
			return i, size
		case argIgnored:
			return len(line), size
		case argID:
			cmd.ID, i = number(line, i, math.MaxUint64)
		case argPri:
			v, i = number(line, i, math.MaxUint32)
			cmd.Pri = uint32(v)
		case argDelay:
			v, i = number(line, i, math.MaxUint32)
			cmd.Delay = uint32(v)
		case argTTR:
			v, i = number(line, i, math.MaxUint32)
			cmd.TTR = uint32(v)
		case argTimeout:
			if compat == Compat112 {
				cmd.Timeout, i = looseTimeout(line, i)
				break
			}
			v, i = number(line, i, MaxTimeout)
			cmd.Timeout = uint32(v)
		case argSize:
			v, i = number(line, i, math.MaxUint32)
			size = uint32(v)
		case argCount:
			cmd.Count, i = strtoul(line, i)
		case argTube:
			cmd.Tube, i = line[i:], len(line)
			if !ValidTube(cmd.Tube) {
				i = -1
			}
		case argToken:
			cmd.Text, i = line[i:], len(line)
		case argLooseTube:
			cmd.Tube, i = looseTube(line, i)
		case argFacts:
			cmd.Count, i = parseFacts(line, i)
		case argIDs:
			cmd.Text, i = parseIDs(line, i)
		case argNote:
			cmd.Text, i = parseNote(line, i)
		default:
			if a&optional != 0 && i == len(line) {
				return i, size
			}
			i = parseWord(line, i, a&^optional, cmd)
		}
		if i < 0 {
			return i, 0
		}
	}
	return i, size
}

// looseTube skips spaces and returns the name characters that follow. The result can be
// too long or start with a hyphen.
func looseTube(line []byte, i int) (tube []byte, end int) {
	for i < len(line) && line[i] == ' ' {
		i++
	}
	end = nameEnd(line, i)
	if end == i {
		return nil, -1
	}
	return line[i:end], end
}

// parseWord parses an argument after spaces. It returns the index of its end, or a
// negative number if it is invalid.
func parseWord(line []byte, i int, a arg, cmd *Command) (end int) {
	for i < len(line) && line[i] == ' ' {
		i++
	}
	end = len(line)
	if n := bytes.IndexByte(line[i:], ' '); n >= 0 {
		end = i + n
	}
	word, ok := line[i:end], end > i
	switch a {
	case argName:
		cmd.Tube, ok = word, ValidTube(word)
	case argOther:
		cmd.Text, ok = word, ValidTube(word)
	case argState, argIdle:
		cmd.State, ok = ParseState(string(word))
		ok = ok && (a == argState || cmd.State != StateReserved)
	case argLimit:
		v, at := digits(word, 0, math.MaxUint32)
		cmd.Count, ok = uint32(v), at == len(word) && v > 0
	case argCursor:
		cmd.Text = word
	case argBatch:
		v, at := digits(word, 0, MaxBatch)
		cmd.Count, ok = uint32(v), at == len(word) && v > 0
	case argWait:
		v, at := digits(word, 0, MaxTimeout)
		cmd.Timeout, ok = uint32(v), at == len(word)
	}
	if !ok {
		return -1
	}
	return end
}

// parseNote returns the text after a space, and the index of its end, which is negative
// if the text is not valid.
func parseNote(line []byte, i int) (text []byte, end int) {
	if i == len(line) || line[i] != ' ' || !ValidNote(line[i+1:]) {
		return nil, -1
	}
	return line[i+1:], len(line)
}

// ValidNote reports whether a text is a valid note: 1 to MaxNote bytes of UTF-8 without
// control characters.
func ValidNote(text []byte) bool {
	return len(text) > 0 && len(text) <= MaxNote && utf8.Valid(text) && bytes.IndexFunc(text, unicode.IsControl) < 0
}

// CutNote converts a text to a valid note, or returns nil if the note would be empty. It
// replaces each sequence of spaces, control characters and invalid UTF-8 with a single
// space, and cuts the text after MaxNote bytes.
func CutNote(text string) []byte {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == utf8.RuneError })
	note := []byte(strings.Join(words, " "))
	if len(note) > MaxNote {
		for note = note[:MaxNote]; !utf8.Valid(note); note = note[:len(note)-1] {
		}
	}
	return note
}

// parseIDs checks a list of ids. It returns the list and the index of its end, which is
// negative if the list is invalid.
func parseIDs(line []byte, i int) (ids []byte, end int) {
	n := 0
	for at := i; at < len(line); n++ {
		if _, at = number(line, at, math.MaxUint64); at < 0 || n == MaxBatch || at < len(line) && line[at] != ' ' {
			return nil, -1
		}
	}
	if n == 0 {
		return nil, -1
	}
	return line[i:], len(line)
}

// NextID returns the first id of a list and the rest of the list. ok is false at the end.
func NextID(ids []byte) (id uint64, rest []byte, ok bool) {
	id, end := number(ids, 0, math.MaxUint64)
	if end < 0 {
		return 0, nil, false
	}
	return id, ids[end:], true
}

// AppendCommand appends a command as a client sends it, so that [Parser.Next] would
// return cmd. It uses Op and the fields of the command's arguments. Op must not be
// Unknown.
func AppendCommand(dst []byte, cmd *Command) []byte {
	row := &commands[cmd.Op]
	dst = append(dst, row.verb...)
	for i, a := range &row.args {
		if a == argEnd || a == argIgnored || a&optional != 0 && cmd.lacks(a&^optional) {
			break
		}
		if a == argFacts {
			dst = appendFactWords(dst, Facts(cmd.Count))
			break
		}
		if i > 0 || dst[len(dst)-1] != ' ' {
			dst = append(dst, ' ')
		}
		dst = appendArg(dst, a&^optional, cmd)
	}
	dst = append(dst, crlf...)
	if cmd.Op == Put {
		dst = append(dst, cmd.Body...)
		dst = append(dst, crlf...)
	}
	return dst
}

// lacks reports whether the command omits an optional argument.
func (cmd *Command) lacks(a arg) bool {
	switch a {
	case argIdle:
		return cmd.State == AnyState
	case argLimit:
		return cmd.Count == 0
	case argWait:
		return cmd.Timeout == 0
	}
	return len(cmd.Text) == 0
}

func appendArg(dst []byte, a arg, cmd *Command) []byte {
	var v uint64
	switch a {
	case argID:
		v = cmd.ID
	case argPri:
		v = uint64(cmd.Pri)
	case argDelay:
		v = uint64(cmd.Delay)
	case argTTR:
		v = uint64(cmd.TTR)
	case argTimeout, argWait:
		v = uint64(cmd.Timeout)
	case argSize:
		v = uint64(len(cmd.Body))
	case argCount, argLimit, argBatch:
		v = uint64(cmd.Count)
	case argTube, argLooseTube, argName:
		return append(dst, cmd.Tube...)
	case argToken, argOther, argCursor, argIDs, argNote:
		return append(dst, cmd.Text...)
	case argState, argIdle:
		return append(dst, cmd.State.String()...)
	}
	return strconv.AppendUint(dst, v, 10)
}
