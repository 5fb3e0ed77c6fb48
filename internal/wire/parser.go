package wire

import (
	"bytes"
	"strings"
)

const (
	// MaxLine is the maximum length of a command line, in bytes, including CR LF.
	MaxLine = 224

	// MaxLongLine is the limit for commands that beanstalkd lacks and that can contain
	// two tubes, and for the line of a reply with facts of a job.
	MaxLongLine = 512

	// MaxBatchLine is the limit for a delete-batch with MaxBatch ids.
	MaxBatchLine = len("delete-batch") + MaxBatch*len(" 18446744073709551615") + len(crlf)

	// DefaultMaxBody is beanstalkd's default value of Parser.MaxBody.
	DefaultMaxBody = 65535

	// LargestMaxBody is the largest value of Parser.MaxBody.
	LargestMaxBody = 1 << 30
)

// A Parser splits the input of a connection into commands. The zero value is ready for
// use and accepts empty bodies only. Between calls, it records only input to discard. An
// incomplete command stays in the caller's buffer, and Next parses its line again, but
// not its body.
type Parser struct {
	// MaxBody is the maximum size of the body of a put, in bytes without CR LF, from 0 to
	// LargestMaxBody.
	MaxBody int

	// Compat is the version of the protocol.
	Compat Compat

	// Auth enables the command auth. Otherwise it is unknown, as in beanstalkd.
	Auth bool

	need int // see Need

	// The input being discarded. At most one of skip, tooLong and http is set.
	skip    int64  // number of bytes left of a body, including its CR LF
	size    uint32 // size of that body
	tooLong bool   // discard the rest of a line that is too long
	http    bool   // discard everything after FaultHTTP
}

// Next parses one command at the front of buf into cmd and returns the number of consumed
// bytes. If ok is false, more input is needed, and cmd is not valid. n can still be more
// than 0, because bytes were discarded. In the next call, the remaining bytes must be at
// the front of buf.
//
// If buf has at least MaxLine and Need bytes, Next always makes progress.
func (p *Parser) Next(buf []byte, cmd *Command) (n int, ok bool) {
	p.need = 0
	*cmd = Command{}
	switch {
	case p.skip > 0:
		return p.skipBody(buf, cmd)
	case p.tooLong:
		return p.skipLine(buf, cmd)
	case p.http:
		return len(buf), false
	}
	if n, size := p.parsePlain(buf, cmd); n > 0 {
		if cmd.Op == Put {
			return p.takeBody(buf, n, size, cmd)
		}
		return n, true
	}
	return p.nextLine(buf, cmd)
}

// nextLine implements Next for any line.
func (p *Parser) nextLine(buf []byte, cmd *Command) (n int, ok bool) {
	*cmd = Command{}
	end := lineEnd(buf)
	if end < 0 {
		if len(buf) < MaxLine {
			return 0, false
		}
		if op, _ := recognize(buf); op.maxLine() > MaxLine {
			return p.nextLong(buf, cmd, op.maxLine())
		}
		if p.http = isHTTP(buf); p.http {
			cmd.Fault = FaultHTTP
			return len(buf), true
		}
		p.tooLong = true
		return p.skipLine(buf, cmd)
	}
	size := p.parseLine(buf[:end], cmd)
	p.http = cmd.Fault == FaultHTTP
	n = end + len(crlf)
	if cmd.Op == Put && cmd.Counted {
		return p.takeBody(buf, n, size, cmd)
	}
	return n, true
}

// nextLong implements Next for the start of a line of more than MaxLine bytes whose
// command permits that.
func (p *Parser) nextLong(buf []byte, cmd *Command, limit int) (n int, ok bool) {
	end := bytes.Index(buf[:min(len(buf), limit)], []byte(crlf))
	switch {
	case end >= 0:
		p.parseLine(buf[:end], cmd)
		return end + len(crlf), true
	case len(buf) < limit:
		p.need = limit
		return 0, false
	}
	p.tooLong = true
	return p.skipLine(buf, cmd)
}

// Need returns the maximum number of bytes that buf must contain for the next command to
// be complete, after Next has consumed nothing and requested more input. It is 0 if the
// end of the line is missing and the size is therefore unknown.
func (p *Parser) Need() int { return p.need }

// Discarding reports whether the parser is within a line or a body that it discards. The
// client must then send more input, even if no unread input is left.
func (p *Parser) Discarding() bool { return p.skip > 0 || p.tooLong }

// parseLine parses a line without its CR LF, in beanstalkd's order of checks. It returns
// the size of the body that a put announces. A put counts as soon as its numbers are
// parsed, even if its line then turns out to be invalid.
func (p *Parser) parseLine(line []byte, cmd *Command) (size uint32) {
	if bytes.IndexByte(line, 0) >= 0 {
		cmd.Fault = FaultFormat
		return 0
	}
	op, i := recognize(line)
	if op == Unknown || op == Auth && !p.Auth {
		cmd.Fault = FaultUnknown
		if isHTTP(line) {
			cmd.Fault = FaultHTTP
		}
		return 0
	}
	cmd.Op = op
	i, size = parseArgs(line, i, cmd, p.Compat)
	cmd.Counted = i == len(line) || i >= 0 && op == Put
	if i != len(line) || op == PauseTube && !ValidTube(cmd.Tube) {
		cmd.Fault = FaultFormat
	}
	return size
}

// isHTTP reports whether a line, or the start of a line, belongs to an HTTP/1 request. A
// web page can make a browser send a request to any port of its machine, with a body that
// is a put. Redis checks for two of these lines.
func isHTTP(line []byte) bool {
	if hasPrefixFold(line, "POST ") || hasPrefixFold(line, "Host:") {
		return true
	}
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(rest, []byte(" "))
	noMethod := func(c rune) bool { return (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' }
	return len(method) > 0 && bytes.IndexFunc(method, noMethod) < 0 && (bytes.HasPrefix(target, []byte("/")) || hasPrefixFold(version, "HTTP/"))
}

// hasPrefixFold reports whether b starts with an ASCII prefix in any case.
func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}

// takeBody completes a put with the body of size bytes at buf[at]. A body that is too
// large is skipped even if the line is invalid; other bodies after invalid lines are not.
func (p *Parser) takeBody(buf []byte, at int, size uint32, cmd *Command) (n int, ok bool) {
	if int64(size) > int64(p.MaxBody) {
		p.skip, p.size = int64(size)+int64(len(crlf)), size
		n, ok = p.skipBody(buf[at:], cmd)
		return at + n, ok
	}
	if cmd.Fault != None {
		return at, true
	}
	end := at + int(size)
	n = end + len(crlf)
	if len(buf) < n {
		p.need = n
		return 0, false
	}
	if string(buf[end:n]) != crlf {
		cmd.Fault, cmd.Count = FaultNoCRLF, size
		return n, true
	}
	cmd.Body = buf[at:end:end]
	return n, true
}

// skipBody discards a body that is too large. The fault is returned after its last byte.
func (p *Parser) skipBody(buf []byte, cmd *Command) (n int, ok bool) {
	n = int(min(p.skip, int64(len(buf))))
	p.skip -= int64(n)
	if p.skip > 0 {
		return n, false
	}
	*cmd = Command{Op: Put, Fault: FaultTooBig, Counted: true, Count: p.size}
	return n, true
}

// skipLine discards a line that is too long. The fault is returned after its end.
func (p *Parser) skipLine(buf []byte, cmd *Command) (n int, ok bool) {
	if i := bytes.Index(buf, []byte(crlf)); i >= 0 {
		p.tooLong = false
		cmd.Fault = FaultFormat
		return i + len(crlf), true
	}
	n = len(buf)
	if n > 0 && buf[n-1] == '\r' {
		n-- // the next byte can be its LF
	}
	return n, false
}

// lineEnd returns the index of the first CR LF, or a negative number if there is none
// within MaxLine bytes. Searching for the LF alone is cheaper, because in most lines it
// is the first one.
func lineEnd(buf []byte) int {
	buf = buf[:min(len(buf), MaxLine)]
	if n := bytes.IndexByte(buf, crlf[1]); n > 0 && buf[n-1] == crlf[0] {
		return n - 1
	}
	for from := 0; ; {
		n := bytes.IndexByte(buf[from:], crlf[1])
		if n < 0 {
			return -1
		}
		if end := from + n - 1; end >= 0 && buf[end] == crlf[0] {
			return end
		}
		from += n + 1
	}
}
