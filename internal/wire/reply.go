package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Word is the first word of a reply.
type Word uint8

const (
	// Words that are complete replies; see AppendWord.
	Buried Word = 1 + iota // also the reply to a put, with an id
	Kicked                 // reply to kick-job and, with a count, to kick
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
	Authenticated // reply to auth
	Noted         // reply to note
	Unauthorized  // the token is unknown, or the command requires a right

	// Words that start a longer reply.
	Inserted
	Reserved
	Found
	OK
	Using
	Watching
	Flushed // reply to flush-tube
	Moved   // reply to move-jobs
	ReservedBatch
	DeletedBatch

	numWords
)

// replies is the table of replies, one row per word.
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
	Noted:          {"NOTED", formBare},
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

// form is the form of the rest of a reply line.
type form uint8

const (
	formBare       form = iota
	formID              // <id>
	formMaybeID         // nothing or <id>
	formCount           // <n>
	formMaybeCount      // nothing or <n>
	formTwoCounts       // <n> <n>
	formTube            // <tube>
	formMaybeBody       // nothing, or <bytes> and the body after the line
	formIDBody          // <id> <bytes>, facts if want was given, and the body after the line
)

// String returns the word as sent.
func (w Word) String() string { return replies[w].word }

// AppendWord appends a reply that consists of one word.
func AppendWord(dst []byte, w Word) []byte { return append(dst, lines[w]...) }

// lines contains each word as a complete reply line. starts contains it as the start of a
// longer reply, followed by a space.
var lines, starts = func() (lines, starts [numWords]string) {
	for w := range replies {
		lines[w], starts[w] = replies[w].word+crlf, replies[w].word+" "
	}
	return lines, starts
}()

// AppendNumber appends a reply that consists of a word and a number. [ReservedBatch] is
// followed by n jobs, each appended by AppendJob. [OK] starts a reply with data that is
// too large to be copied: n bytes and AppendDataEnd must follow.
func AppendNumber(dst []byte, w Word, n uint64) []byte {
	dst = append(dst, starts[w]...)
	dst = strconv.AppendUint(dst, n, 10)
	return append(dst, crlf...)
}

// AppendUsing appends the reply to use and list-tube-used.
func AppendUsing(dst []byte, tube string) []byte {
	dst = append(dst, starts[Using]...)
	dst = append(dst, tube...)
	return append(dst, crlf...)
}

// AppendDeletedBatch appends the reply to delete-batch.
func AppendDeletedBatch(dst []byte, deleted, notFound uint64) []byte {
	dst = strconv.AppendUint(append(dst, starts[DeletedBatch]...), deleted, 10)
	dst = strconv.AppendUint(append(dst, ' '), notFound, 10)
	return append(dst, crlf...)
}

// AppendJob appends a reply with a job; w is Reserved or Found.
func AppendJob(dst []byte, w Word, id uint64, body []byte) []byte {
	dst = AppendJobStart(dst, w, id, len(body))
	dst = append(dst, body...)
	return append(dst, crlf...)
}

// AppendJobStart starts a reply with a job whose body is too large to be copied. The body
// of size bytes and AppendDataEnd must follow.
func AppendJobStart(dst []byte, w Word, id uint64, size int) []byte {
	dst = append(dst, starts[w]...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(size), 10)
	return append(dst, crlf...)
}

// AppendDataEnd completes a reply whose data was appended separately.
func AppendDataEnd(dst []byte) []byte { return append(dst, crlf...) }

// A Reply is a reply as received by a client.
type Reply struct {
	Kind  Word
	ID    uint64 // Inserted, Reserved, Found, and Buried as the reply to a put
	N     uint64 // number. Watching: tubes. Flushed, Moved, DeletedBatch: jobs. ReservedBatch: Reserved replies that follow. Kicked: jobs, or 1 if the reply has no number
	Lost  uint64 // DeletedBatch: number of ids without a job that could be deleted
	Tube  []byte // Using: aliases the input
	Facts []byte // Reserved, Found: see ParseFacts; aliases the input
	Body  []byte // Reserved, Found, OK: without CR LF; aliases the input. Nil for OK without data, which some servers reply to auth
}

// ErrReply is wrapped by the errors of ParseReply, ParseDict and ParseList: the bytes are
// not a valid reply. The connection is no longer usable.
var ErrReply = errors.New("wire: malformed reply")

// ParseReply parses a reply at the front of buf into r and returns the number of consumed
// bytes, or 0 if more are needed. r is set only if n is not 0. A body must be somewhat
// smaller than 2 GiB.
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

// bodySize parses the size of a body. If int has 32 bits, it leaves room for the line and
// the CR LF.
func bodySize(line []byte, i int) (size, end int) {
	v, end := digits(line, i, math.MaxInt32-MaxLine-uint64(len(crlf)))
	return int(v), end
}

// wordsByFirst contains the words by their first byte.
var wordsByFirst = func() (t [256][]Word) {
	for w := Word(1); w < numWords; w++ {
		first := replies[w].word[0]
		t[first] = append(t[first], w)
	}
	return t
}()

// recognizeWord returns the word of a line and the index of its end, which is a space or
// the end of the line.
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
