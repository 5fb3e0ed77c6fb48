package binlog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

var le = binary.LittleEndian

const (
	version    = 7
	headerSize = 4  // bytes; the version
	lenSize    = 4  // bytes; the length of a tube's name
	jobSize    = 80 // bytes
	maxTube    = wire.MaxTube
	maxBody    = 1 << 30 // bytes, without CR LF; beanstalkd's largest -z
	second     = 1e9     // ns
)

// bodyEnd ends each body in the files. The size in the files includes it.
const bodyEnd = "\r\n"

// States in the files.
const (
	stateDeleted = iota
	stateReady
	stateReserved
	stateBuried
	stateDelayed
)

// A job is the struct of a record. Times are nanoseconds since 1970.
type job struct {
	id    uint64
	pri   uint32
	delay uint32 // s
	ttr   uint32 // s
	size  int    // bytes of the body, including its CR LF

	created, deadline int64

	counts engine.Counts

	state byte
}

// decodeJob decodes a struct and checks that each value is possible. It accepts the id 0,
// which has a special meaning.
func decodeJob(b []byte) (job, error) {
	delay, ttr, created, deadline := le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	j := job{
		id:      le.Uint64(b),
		pri:     le.Uint32(b[8:]),
		delay:   uint32(delay / second),
		ttr:     max(1, uint32(ttr/second)), // at least a second, as in put
		size:    int(int32(le.Uint32(b[32:]))),
		created: int64(created),
		state:   b[76],
	}
	for k, n := range j.counts.All() {
		*n = le.Uint32(b[56+4*k:])
	}
	if j.state == stateDelayed {
		j.deadline = int64(deadline)
	}

	const longest, latest = (math.MaxUint32+1)*second - 1, math.MaxInt64
	switch {
	case j.state > stateDelayed:
		return j, damagef("job %d has unknown state %d", j.id, j.state)
	case j.size < len(bodyEnd) || j.size > maxBody+len(bodyEnd):
		return j, damagef("job %d has a body of %d bytes", j.id, j.size)
	case delay > longest:
		return j, damagef("job %d has an impossible delay", j.id)
	case ttr > longest:
		return j, damagef("job %d has an impossible ttr", j.id)
	case created > latest-longest: // the end of a delay would overflow
		return j, damagef("job %d has an impossible time of creation", j.id)
	case j.state == stateDelayed && deadline > latest:
		return j, damagef("job %d has an impossible deadline", j.id)
	}
	return j, nil
}

// appendRecord appends a full record without its body or, if tube is empty, a short
// record.
func appendRecord(dst []byte, tube string, j *job) []byte {
	const padding = 0
	dst = le.AppendUint32(dst, uint32(len(tube)))
	dst = append(dst, tube...)
	dst = le.AppendUint64(dst, j.id)
	dst = le.AppendUint32(dst, j.pri)
	dst = le.AppendUint32(dst, padding)
	dst = le.AppendUint64(dst, uint64(j.delay)*second)
	dst = le.AppendUint64(dst, uint64(j.ttr)*second)
	dst = le.AppendUint32(dst, uint32(j.size))
	dst = le.AppendUint32(dst, padding)
	dst = le.AppendUint64(dst, uint64(j.created))
	dst = le.AppendUint64(dst, uint64(j.deadline))
	for _, n := range j.counts.All() {
		dst = le.AppendUint32(dst, *n)
	}
	return append(dst, j.state, padding, padding, padding)
}

// change returns j as a Change without tube, body and Due.
func (j *job) change(kind engine.ChangeKind, epoch int64) engine.Change {
	return engine.Change{
		Kind:    kind,
		ID:      j.id,
		Pri:     j.pri,
		Delay:   j.delay,
		TTR:     j.ttr,
		Created: j.created - epoch,
		Counts:  j.counts,
		BodyLen: j.size - len(bodyEnd),
	}
}

// jobOf is the inverse of change. It also sets the state.
func jobOf(c *engine.Change, epoch int64) job {
	j := job{
		id:      c.ID,
		pri:     c.Pri,
		delay:   c.Delay,
		ttr:     c.TTR,
		size:    len(c.Body) + len(bodyEnd),
		created: max(0, c.Created+epoch),
		counts:  c.Counts,
		state:   stateReady,
	}
	switch c.State {
	case engine.Delayed:
		j.state, j.deadline = stateDelayed, max(0, c.Due+epoch)
	case engine.Buried:
		// beanstalkd increments the counter when it adds the job to its buried list.
		j.state, j.counts.Buries = stateBuried, max(c.Buries, 1)-1
	}
	return j
}

// damage is the reason why the rest of a file cannot be read.
type damage string

func (d damage) Error() string { return string(d) }

func damagef(format string, args ...any) error { return damage(fmt.Sprintf(format, args...)) }
