package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Word is the word that a reply begins with.
type Word uint8

const (
	// Words that are a whole reply; see AppendWord.
	Buried Word = 1 + iota // also of put, with an id
	Kicked                 // by kick-job; also of kick, with a count
	Deleted
	Released
	Touched
	Paused
	NotFound
	NotIgnored
	DeadlineSoon
	TimedOut
	Draining
	ExpectedCRLF
	JobTooBig
	BadFormat
	UnknownCommand
	OutOfMemory
	InternalError
	Authenticated // by auth
	Unauthorized  // auth with a token that is not known, or a command that needs one

	// Words that more must follow.
	Inserted
	Reserved
	Found
	OK
	Using
	Watching
	Flushed // by flush-tube
	Moved   // by move-jobs
	ReservedBatch
	DeletedBatch

	numWords
)

// ReplyKind is how clients call a Word.
type ReplyKind = Word

// replies is the table of the replies, one row a word.
var replies = [numWords]struct {
	word string
	form form
}{
	Buried:         {"BURIED", formMaybeID},
	Kicked:         {"KICKED", formMaybeCount},
	Deleted:        {"DELETED", formBare},
	Released:       {"RELEASED", formBare},
	Touched:        {"TOUCHED", formBare},
	Paused:         {"PAUSED", formBare},
	NotFound:       {"NOT_FOUND", formBare},
	NotIgnored:     {"NOT_IGNORED", formBare},
	DeadlineSoon:   {"DEADLINE_SOON", formBare},
	TimedOut:       {"TIMED_OUT", formBare},
	Draining:       {"DRAINING", formBare},
	ExpectedCRLF:   {"EXPECTED_CRLF", formBare},
	JobTooBig:      {"JOB_TOO_BIG", formBare},
	BadFormat:      {"BAD_FORMAT", formBare},
	UnknownCommand: {"UNKNOWN_COMMAND", formBare},
	OutOfMemory:    {"OUT_OF_MEMORY", formBare},
	InternalError:  {"INTERNAL_ERROR", formBare},
	Authenticated:  {"AUTHENTICATED", formBare},
	Unauthorized:   {"UNAUTHORIZED", formBare},
	Inserted:       {"INSERTED", formID},
	Reserved:       {"RESERVED", formIDBody},
	Found:          {"FOUND", formIDBody},
	OK:             {"OK", formMaybeBody},
	Using:          {"USING", formTube},
	Watching:       {"WATCHING", formCount},
	Flushed:        {"FLUSHED", formCount},
	Moved:          {"MOVED", formCount},
	ReservedBatch:  {"RESERVED_BATCH", formCount},
	DeletedBatch:   {"DELETED_BATCH", formTwoCounts},
}

// form is what follows the word of a reply.
type form uint8

const (
	formBare       form = iota
	formID              // <id>
	formMaybeID         // nothing or <id>
	formCount           // <n>
	formMaybeCount      // nothing or <n>
	formTwoCounts       // <n> <n>
	formTube            // <tube>
	formMaybeBody       // nothing, or <bytes>, and the body after the line
	formIDBody          // <id> <bytes>, facts if want was given, and the body after the line
)

// String returns the word as it is sent.
func (w Word) String() string {
	if w == 0 || w >= numWords {
		return "none"
	}
	return replies[w].word
}

// AppendWord appends a reply that is one word and nothing else.
func AppendWord(dst []byte, w Word) []byte { return append(dst, lines[w]...) }

// lines are the words as whole replies, and starts as what more follows.
var lines, starts = func() (lines, starts [numWords]string) {
	for w := range replies {
		lines[w], starts[w] = replies[w].word+crlf, replies[w].word+" "
	}
	return lines, starts
}()

// AppendInserted appends the reply to a put.
func AppendInserted(dst []byte, id uint64) []byte {
	return appendNumber(dst, Inserted, id)
}

// AppendReserved appends the reply to the reserve commands.
func AppendReserved(dst []byte, id uint64, body []byte) []byte {
	return AppendJob(dst, Reserved, id, body)
}

// AppendOK appends a reply with data. The dictionaries and lists that the
// protocol knows have functions of their own.
func AppendOK(dst, data []byte) []byte {
	dst = appendNumber(dst, OK, uint64(len(data)))
	dst = append(dst, data...)
	return append(dst, crlf...)
}

// AppendUsing appends the reply to use and list-tube-used.
func AppendUsing(dst []byte, tube string) []byte {
	dst = append(dst, replies[Using].word...)
	dst = append(dst, ' ')
	dst = append(dst, tube...)
	return append(dst, crlf...)
}

// AppendWatching appends the reply to watch and ignore; n is the number of watched tubes.
func AppendWatching(dst []byte, n int) []byte {
	return appendNumber(dst, Watching, uint64(n))
}

// AppendKicked appends the reply to kick.
func AppendKicked(dst []byte, n uint64) []byte {
	return appendNumber(dst, Kicked, n)
}

// AppendFlushed appends the reply to flush-tube.
func AppendFlushed(dst []byte, n uint64) []byte {
	return appendNumber(dst, Flushed, n)
}

// AppendMoved appends the reply to move-jobs.
func AppendMoved(dst []byte, n uint64) []byte {
	return appendNumber(dst, Moved, n)
}

// AppendReservedBatch begins the reply to reserve-batch; n jobs must follow, each as
// AppendJob appends it.
func AppendReservedBatch(dst []byte, n int) []byte {
	return appendNumber(dst, ReservedBatch, uint64(n))
}

// AppendDeletedBatch appends the reply to delete-batch.
func AppendDeletedBatch(dst []byte, deleted, notFound uint64) []byte {
	dst = strconv.AppendUint(append(dst, starts[DeletedBatch]...), deleted, 10)
	dst = strconv.AppendUint(append(dst, ' '), notFound, 10)
	return append(dst, crlf...)
}

func appendNumber(dst []byte, w Word, n uint64) []byte {
	dst = append(dst, starts[w]...)
	dst = strconv.AppendUint(dst, n, 10)
	return append(dst, crlf...)
}

// AppendJob appends a reply with a job; w is Reserved or Found.
func AppendJob(dst []byte, w Word, id uint64, body []byte) []byte {
	dst = AppendJobStart(dst, w, id, len(body))
	dst = append(dst, body...)
	return append(dst, crlf...)
}

// AppendJobStart begins a reply with a job, for a body that is too large to be
// copied. The body, of so many bytes, and AppendDataEnd must follow.
func AppendJobStart(dst []byte, w Word, id uint64, size int) []byte {
	dst = append(dst, starts[w]...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(size), 10)
	return append(dst, crlf...)
}

// AppendOKStart begins a reply with data, for data of so many bytes that is too
// large to be copied. It and AppendDataEnd must follow.
func AppendOKStart(dst []byte, size int) []byte {
	return appendNumber(dst, OK, uint64(size))
}

// AppendDataEnd completes a reply whose data was appended in pieces.
func AppendDataEnd(dst []byte) []byte { return append(dst, crlf...) }

// A Reply is one reply as a client receives it.
type Reply struct {
	Kind  ReplyKind
	ID    uint64 // Inserted, Reserved, Found; Buried, if it answers a put
	N     uint64 // Watching: tubes. Flushed, Moved, DeletedBatch: jobs. ReservedBatch: how many Reserved follow. Kicked: jobs, and 1 if no number was sent
	Lost  uint64 // DeletedBatch: ids of no job that could be deleted
	Tube  []byte // Using; aliases the input
	Facts []byte // Reserved, Found: see ParseFacts; aliases the input
	Body  []byte // Reserved, Found, OK; without CR LF; aliases the input. nil if OK is all, as some servers answer auth
}

// ErrReply is wrapped by the errors of ParseReply, ParseDict and ParseList: these
// bytes are nothing that a server says. There is no way to go on with such a
// connection.
var ErrReply = errors.New("wire: malformed reply")

// ParseReply parses one reply from the front of buf into r and returns how many
// bytes it takes, or 0 if more are needed. r is set only if n is not 0. A body
// must be somewhat smaller than 2 GiB.
func ParseReply(buf []byte, r *Reply) (n int, err error) {
	end := lineEnd(buf)
	if end < 0 && len(buf) >= MaxLine {
		limit := MaxLine
		if w, _ := recognizeWord(buf); replies[w].form == formIDBody {
			limit = MaxLongLine // with facts
		}
		if end = bytes.Index(buf[:min(len(buf), limit)], []byte(crlf)); end < 0 && len(buf) >= limit {
			return 0, fmt.Errorf("%w: no end of line within %d bytes", ErrReply, limit)
		}
	}
	if end < 0 {
		return 0, nil
	}
	line := buf[:end]
	*r = Reply{}
	size, ok := parseReplyLine(line, r)
	if !ok {
		return 0, fmt.Errorf("%w: %q", ErrReply, line)
	}
	at := end + len(crlf)
	if size < 0 {
		return at, nil
	}
	end = at + size
	if len(buf)-len(crlf) < end {
		return 0, nil
	}
	if string(buf[end:end+len(crlf)]) != crlf {
		return 0, fmt.Errorf("%w: %q: no line end after %d bytes of data", ErrReply, line, size)
	}
	r.Body = buf[at:end:end]
	return end + len(crlf), nil
}

// parseReplyLine parses the line of a reply. It returns the size of the body, or a
// negative number if the reply has none.
func parseReplyLine(line []byte, r *Reply) (size int, ok bool) {
	w, i := recognizeWord(line)
	if w == 0 {
		return -1, false
	}
	r.Kind = w
	form := replies[w].form
	if i == len(line) {
		if form == formMaybeCount {
			r.N = 1
		}
		return -1, form == formBare || form == formMaybeID || form == formMaybeCount || form == formMaybeBody
	}
	i++ // the space
	size = -1
	switch form {
	case formBare:
		return -1, false
	case formID, formMaybeID:
		r.ID, i = digits(line, i, math.MaxUint64)
	case formCount, formMaybeCount:
		r.N, i = digits(line, i, math.MaxUint64)
	case formTwoCounts:
		r.N, i = digits(line, i, math.MaxUint64)
		if i < 0 || i == len(line) || line[i] != ' ' {
			return -1, false
		}
		r.Lost, i = digits(line, i+1, math.MaxUint64)
	case formTube:
		r.Tube, i = line[i:], len(line)
		if !ValidTube(r.Tube) {
			return -1, false
		}
	case formMaybeBody:
		size, i = bodySize(line, i)
	case formIDBody:
		r.ID, i = digits(line, i, math.MaxUint64)
		if i < 0 || i == len(line) || line[i] != ' ' {
			return -1, false
		}
		size, i = bodySize(line, i+1)
		if i > 0 && i < len(line) && line[i] == ' ' && bytes.IndexByte(line[i:], '=') > 1 {
			r.Facts, i = line[i+1:], len(line)
		}
	}
	return size, i == len(line)
}

// bodySize leaves room in an int for the size with its line before and CR LF
// after it, wherever an int has 32 bits.
func bodySize(line []byte, i int) (size, end int) {
	v, end := digits(line, i, math.MaxInt32-MaxLine-uint64(len(crlf)))
	return int(v), end
}

// wordsByFirst lists the words by their first byte.
var wordsByFirst = func() (t [256][]Word) {
	for w := Word(1); w < numWords; w++ {
		first := replies[w].word[0]
		t[first] = append(t[first], w)
	}
	return t
}()

// recognizeWord returns the word of a line, which ends with the line or at a
// space, and where it ends.
func recognizeWord(line []byte) (w Word, end int) {
	if len(line) == 0 {
		return 0, 0
	}
	for _, w := range wordsByFirst[line[0]] {
		word := replies[w].word
		if len(line) < len(word) || string(line[:len(word)]) != word {
			continue
		}
		if len(line) == len(word) || line[len(word)] == ' ' {
			return w, len(word)
		}
	}
	return 0, 0
}
