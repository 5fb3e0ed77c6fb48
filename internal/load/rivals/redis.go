package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// redis is the dialect of the queue that the documentation of Redis calls
// reliable: a list of what is ready and a list of what is being processed. A
// worker takes from the one, which puts the job on the other in the same command,
// and removes it there when it has finished. The job's body is its name, so that
// bodies must differ.
//
// LREM looks through the list of what is being processed. It is as long as there
// are jobs under way; they are kept in the order in which they were taken and
// looked through from the oldest, which is the kindest order for a queue.
type redis struct {
	fifo
	bodies [][]byte // by slot, of the job it took
	line   []byte   // of the last message, without CR LF
	bulk   []byte   // of the last message; nil unless it is a bulk string
}

const (
	redisQueue      = "queue"
	redisProcessing = "processing"
)

var (
	redisPut    = appendRESP(nil, 3, "LPUSH", redisQueue) // the body follows
	redisTake   = appendRESP(nil, 5, "LMOVE", redisQueue, redisProcessing, "RIGHT", "RIGHT")
	redisFinish = appendRESP(nil, 4, "LREM", redisProcessing, "1") // the body follows
)

var errNotRESP = errors.New("not RESP")

func newRedis(slots int) *redis {
	return &redis{fifo: newFIFO(slots), bodies: make([][]byte, slots)}
}

func (d *redis) appendPut(dst []byte, slot int, body []byte) []byte {
	d.push(slot)
	return appendBulk(append(dst, redisPut...), body)
}

func (d *redis) appendTake(dst []byte, slot int) []byte {
	d.push(slot)
	return append(dst, redisTake...)
}

func (d *redis) appendFinish(dst []byte, slot int) []byte {
	d.push(slot)
	return appendBulk(append(dst, redisFinish...), d.bodies[slot])
}

// appendRESP begins a command of so many words, the first of which are given.
func appendRESP(dst []byte, words int, first ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", words)
	for _, w := range first {
		dst = appendBulk(dst, []byte(w))
	}
	return dst
}

func appendBulk(dst, b []byte) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(b)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, b...)
	return append(dst, "\r\n"...)
}

// next parses a simple string, an error, an integer or a bulk string. The
// commands that are sent call for no other.
func (d *redis) next(in []byte) (n, slot int, err error) {
	end := bytes.Index(in, crlf)
	if end < 0 {
		return 0, nobody, nil
	}
	d.line, d.bulk, n = in[:end], nil, end+len(crlf)
	if end == 0 || bytes.IndexByte([]byte("+-:$"), in[0]) < 0 {
		return 0, nobody, errNotRESP
	}
	if in[0] == '$' && in[1] != '-' { // $-1 is the reply "there is none"
		size, ok := decimal(in[1:end])
		if !ok {
			return 0, nobody, errNotRESP
		}
		if len(in) < n+size+len(crlf) {
			return 0, nobody, nil
		}
		d.bulk = in[n : n+size]
		n += size + len(crlf)
	}
	return n, d.pop(), nil
}

func (d *redis) answer(slot int, s step) (body []byte, ok bool) {
	switch s {
	case put:
		return nil, d.line[0] == ':' // the length of the list
	case take:
		d.bodies[slot] = append(d.bodies[slot][:0], d.bulk...)
		return d.bulk, d.bulk != nil
	}
	return nil, string(d.line) == ":1"
}

var crlf = []byte("\r\n")

// decimal parses a length below a million millions.
func decimal(digits []byte) (n int, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(digits) > 0 && len(digits) <= 12
}
