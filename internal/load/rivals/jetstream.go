package main

import (
	"bytes"
	"errors"
	"fmt"
)

// jetstream is the dialect of a stream with the retention policy "workqueue"
// and one durable pull consumer that all connections share. Each slot has an
// inbox and a subscription of its own, whose number is slot+1, because replies
// come in any order.
//
//	put     PUB jobs INBOX                            MSG with a PubAck
//	take    PUB $JS.API.CONSUMER.MSG.NEXT... INBOX    MSG with the job, whose reply subject takes the ack
//	finish  PUB $JS.ACK... INBOX "+ACK"               MSG without payload: the ack is acknowledged
type jetstream struct {
	inboxes []inbox // by slot
	msg     natsMsg // the last message
	pong    bool    // a PING wants its answer
}

type inbox struct {
	put    []byte // the line of the put, and
	take   []byte // the whole request, which are always the same
	finish []byte // " INBOX 4\r\n+ACK\r\n"
	ackTo  []byte // where the job that the slot took is acknowledged
}

// A natsMsg is a MSG or an HMSG. All parts alias the input.
type natsMsg struct {
	reply   []byte // subject; empty if there is none
	payload []byte
	status  bool // HMSG: the server says something about a request, such as 503
}

const (
	natsStream   = "JOBS"
	natsConsumer = "WORKERS"
	natsSubject  = "jobs"
	natsNext     = "$JS.API.CONSUMER.MSG.NEXT." + natsStream + "." + natsConsumer
)

var errNotNATS = errors.New("not a message of NATS")

// newJetStream returns the dialect of the connection with this number, and the
// lines that subscribe its inboxes.
func newJetStream(conn, slots, bodySize int) (*jetstream, []byte) {
	d := &jetstream{inboxes: make([]inbox, slots)}
	var subscribe []byte
	for slot := range d.inboxes {
		name := fmt.Sprintf("_INBOX.%d.%d", conn, slot)
		d.inboxes[slot] = inbox{
			put:    fmt.Appendf(nil, "PUB %s %s %d\r\n", natsSubject, name, bodySize),
			take:   fmt.Appendf(nil, "PUB %s %s 0\r\n\r\n", natsNext, name), // no options: one job, and wait for it
			finish: fmt.Appendf(nil, " %s 4\r\n+ACK\r\n", name),
		}
		subscribe = fmt.Appendf(subscribe, "SUB %s %d\r\n", name, slot+1)
	}
	return d, subscribe
}

func (d *jetstream) appendPut(dst []byte, slot int, body []byte) []byte {
	dst = append(d.appendPong(dst), d.inboxes[slot].put...)
	return append(append(dst, body...), crlf...)
}

func (d *jetstream) appendTake(dst []byte, slot int) []byte {
	return append(d.appendPong(dst), d.inboxes[slot].take...)
}

func (d *jetstream) appendFinish(dst []byte, slot int) []byte {
	in := &d.inboxes[slot]
	dst = append(d.appendPong(dst), "PUB "...)
	return append(append(dst, in.ackTo...), in.finish...)
}

// appendPong answers a PING, which comes every two minutes. It may wait for the
// next request: the server gives it minutes.
func (d *jetstream) appendPong(dst []byte) []byte {
	if !d.pong {
		return dst
	}
	d.pong = false
	return append(dst, "PONG\r\n"...)
}

func (d *jetstream) next(in []byte) (n, slot int, err error) {
	end := bytes.Index(in, crlf)
	if end < 0 {
		return 0, nobody, nil
	}
	verb, args, _ := bytes.Cut(in[:end], space)
	switch string(verb) {
	case "MSG", "HMSG":
		return d.message(in, end+len(crlf), string(verb) == "HMSG", args)
	case "PING":
		d.pong = true
		fallthrough
	case "PONG", "INFO", "+OK":
		return end + len(crlf), nobody, nil
	}
	return 0, nobody, errNotNATS
}

// message parses "subject sid [reply] [header-bytes] bytes" and the payload
// behind that line.
func (d *jetstream) message(in []byte, line int, status bool, args []byte) (n, slot int, err error) {
	_, args, _ = bytes.Cut(args, space) // the subject; the subscription says it all
	sid, args, ok1 := bytes.Cut(args, space)
	sizes := 1
	if status {
		sizes = 2
	}
	var reply []byte
	if bytes.Count(args, space) == sizes {
		reply, args, _ = bytes.Cut(args, space)
	}
	number, ok2 := decimal(sid)
	size, ok3 := decimal(args[bytes.LastIndexByte(args, ' ')+1:])
	if !ok1 || !ok2 || !ok3 || number < 1 || number > len(d.inboxes) {
		return 0, nobody, errNotNATS
	}
	n = line + size + len(crlf)
	if len(in) < n {
		return 0, nobody, nil
	}
	d.msg = natsMsg{reply: reply, payload: in[line : line+size], status: status}
	return n, number - 1, nil
}

var (
	space  = []byte(" ")
	pubAck = []byte(`{"stream":`) // a refusal begins with {"error":
)

func (d *jetstream) answer(slot int, s step) (body []byte, ok bool) {
	if d.msg.status {
		return nil, false
	}
	switch s {
	case put:
		return nil, bytes.HasPrefix(d.msg.payload, pubAck)
	case take:
		d.inboxes[slot].ackTo = append(d.inboxes[slot].ackTo[:0], d.msg.reply...)
		return d.msg.payload, len(d.msg.reply) > 0
	}
	return nil, len(d.msg.payload) == 0
}
