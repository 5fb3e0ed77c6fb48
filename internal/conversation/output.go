package conversation

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// shortList is the maximum number of names that are formatted in one piece.
	shortList = 256

	// listPiece is the size of the pieces in which a longer list is formatted, in bytes.
	listPiece = 64 << 10

	// listItem is the number of bytes of a list item without the name. maxListItem is
	// larger than an item with its name and the end of the list.
	listItem    = 3
	maxListItem = 512

	// A body of at least largeBody bytes is not copied into the reply. The engine
	// allocates bodies above 128 KiB separately and never changes them. Smaller bodies
	// share pages that the engine reuses.
	largeBody = 128<<10 + 1

	// keptAnswer is the largest buffer for answers of waiting reserves that a
	// conversation keeps, in bytes.
	keptAnswer = 1 << 10
)

// output is the buffer of replies to write.
type output struct {
	bytes    []byte
	borrowed bool  // whether bytes is part of the batch's buffer
	rest     *rest // rest of the last reply; nil if it is complete
}

func (o *output) empty() bool { return len(o.bytes) == 0 && o.rest == nil }

// next returns the next piece to write.
func (o *output) next() []byte {
	if len(o.bytes) > 0 {
		return o.bytes
	}
	return o.rest.body
}

// wrote removes the first n bytes of the piece. If the piece is borrowed, wrote copies
// the remaining bytes.
func (o *output) wrote(n int) {
	switch {
	case len(o.bytes) == 0:
		o.rest.body = o.rest.body[n:]
	case n < len(o.bytes):
		if o.bytes = o.bytes[n:]; o.borrowed {
			o.bytes, o.borrowed = append([]byte(nil), o.bytes...), false
		}
		return
	default:
		o.bytes, o.borrowed = nil, false
	}
	if o.rest != nil && len(o.rest.body) == 0 {
		o.continueReply()
	}
}

// A rest is the unwritten end of a reply: names, a large body, or a list of jobs. Names
// are formatted while the client reads them, because the names of 100,000 tubes take more
// than a megabyte.
type rest struct {
	body  []byte
	names engine.Names
	next  int
	piece []byte // buffer for pieces with names
}

// list appends a reply with names.
func (o *output) list(names engine.Names) {
	o.bytes = wire.AppendListStart(o.bytes, names.Len(), names.Bytes())
	o.rest = &rest{names: names}
	if names.Len() <= shortList {
		o.continueReply()
	}
}

// continueReply formats the next part of a reply when all earlier parts are written.
func (o *output) continueReply() {
	r := o.rest
	if len(o.bytes) == 0 {
		if r.piece == nil {
			r.piece = make([]byte, 0, min(r.names.Bytes()+listItem*r.names.Len(), listPiece)+maxListItem)
		}
		o.bytes = r.piece
	}
	for end := len(o.bytes) + listPiece; len(o.bytes) < end && r.next < r.names.Len(); r.next++ {
		o.bytes = wire.AppendListItem(o.bytes, r.names.At(r.next))
	}
	if r.next == r.names.Len() {
		o.bytes = wire.AppendDataEnd(o.bytes)
		o.rest = nil
	}
}

// A want is a client's request for facts about reserved jobs.
type want struct {
	facts  wire.Facts
	engine *engine.Engine
	job    *wire.JobStats // Shared.job
}

// job appends a reply with a job. If the body is large, job appends only the part before
// it.
func (o *output) job(w wire.Word, job engine.Job, f *want) {
	switch {
	case len(job.Body) >= largeBody:
		o.jobStart(w, job, f)
		o.rest = &rest{body: job.Body}
	case f != nil:
		o.wholeJob(w, job, f)
	default:
		o.bytes = wire.AppendJob(o.bytes, w, job.ID, job.Body)
	}
}

// wholeJob is like job, but copies bodies of any size.
func (o *output) wholeJob(w wire.Word, job engine.Job, f *want) {
	o.jobStart(w, job, f)
	o.bytes = wire.AppendDataEnd(append(o.bytes, job.Body...))
}

// jobStart appends the line before a body.
func (o *output) jobStart(w wire.Word, job engine.Job, f *want) {
	o.bytes = wire.AppendJobStart(o.bytes, w, job.ID, len(job.Body))
	if f == nil {
		return
	}
	st := f.engine.Handed(job.ID)
	*f.job = jobStats(&st)
	o.bytes = wire.AppendFacts(o.bytes, f.facts, f.job)
}

// jobLine is the maximum size of a job in a batch without its facts and its body, in
// bytes.
const jobLine = 48

// batch appends a reply with a batch of jobs. If the last body is large, batch appends
// the part before it.
func (o *output) batch(jobs []engine.Job, f *want) {
	size := jobLine
	for i := range jobs {
		size += jobLine + len(jobs[i].Body)
	}
	o.bytes = wire.AppendNumber(slices.Grow(o.bytes, size), wire.ReservedBatch, uint64(len(jobs)))
	for i, j := range jobs {
		if i < len(jobs)-1 {
			o.wholeJob(wire.Reserved, j, f)
		} else {
			o.job(wire.Reserved, j, f)
		}
	}
}

// A wait is the state of a waiting reserve.
type wait struct {
	phase waitPhase
	batch bool // the command is reserve-batch

	// The turn that ends the wait owns the answer. After the turn is settled, the driver
	// owns it.
	answer output
}

type waitPhase uint8

const (
	noWait   waitPhase = iota
	waiting            // there is no answer, or the driver has not received it yet
	answered           // the turn that ended the wait is settled; earlier replies must be sent first
)

// end appends the answer after the replies to earlier commands.
func (w *wait) end(out *output) {
	w.phase = noWait
	if len(out.bytes) == 0 {
		out.bytes = w.answer.bytes // the wait uses the buffer again only after this is written
	} else {
		out.bytes = append(out.bytes, w.answer.bytes...)
	}
	out.rest, w.answer.rest = w.answer.rest, nil
	if w.answer.bytes = w.answer.bytes[:0]; cap(w.answer.bytes) > keptAnswer {
		w.answer.bytes = nil
	}
}
