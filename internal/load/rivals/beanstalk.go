package main

import "github.com/beanpole-mq/beanpole/internal/wire"

const (
	putPri = 1024
	putTTR = 3600 // s; long enough that no job of a run comes back
)

// beanstalk is the dialect of beanstalkd and of beanpole. Its bytes are those of
// package wire, which serves both alike.
type beanstalk struct {
	fifo
	ids   []uint64 // by slot
	reply wire.Reply
}

func newBeanstalk(slots int) *beanstalk {
	return &beanstalk{fifo: newFIFO(slots), ids: make([]uint64, slots)}
}

func (d *beanstalk) appendPut(dst []byte, slot int, body []byte) []byte {
	d.push(slot)
	return wire.AppendPut(dst, putPri, 0, putTTR, body)
}

func (d *beanstalk) appendTake(dst []byte, slot int) []byte {
	d.push(slot)
	return wire.AppendReserve(dst)
}

func (d *beanstalk) appendFinish(dst []byte, slot int) []byte {
	d.push(slot)
	return wire.AppendDelete(dst, d.ids[slot])
}

func (d *beanstalk) next(in []byte) (n, slot int, err error) {
	n, err = wire.ParseReply(in, &d.reply)
	if n == 0 || err != nil {
		return 0, nobody, err
	}
	return n, d.pop(), nil
}

func (d *beanstalk) answer(slot int, s step) (body []byte, ok bool) {
	switch s {
	case put:
		return nil, d.reply.Kind == wire.Inserted
	case take:
		d.ids[slot] = d.reply.ID
		return d.reply.Body, d.reply.Kind == wire.Reserved
	}
	return nil, d.reply.Kind == wire.Deleted
}
