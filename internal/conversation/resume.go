package conversation

import (
	"encoding/binary"
	"errors"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// In a cluster, a client without a command in progress survives a change of leader: the
// next leader resumes its conversation. After each batch of commands, the turn records
// the session in two parts: the note, which changes rarely, and the state, which changes
// often.
//
//	note   facts uvarint  identity  tube used  number uvarint  tubes watched
//	state  flags u8  if it waits: waited uvarint  left varint (-1: for ever)
//	       number uvarint  claims: id uvarint  reserves uvarint  for uvarint  left varint  at varint
//
// Strings have their length in front. Times are in ns.

// A record is the recorded state of a conversation.
type record struct {
	sess        *engine.Session // session of the turn; the driver never changes it
	note, state []byte
	answer      []byte // the state after the answer of a wait; it belongs to the turn until Answered
	noted       bool   // Record has returned note
	recorded    bool   // Record has returned state
	changed     bool   // the note must be recorded again; it belongs to the turn
	refused     bool   // the last batch was not executed, because the engine is not the leader's
}

const (
	waitsFlag = 1 << iota
	batchFlag
	producerFlag
	workerFlag
	lostFlag // the session is too large to be resumed
)

const (
	maxNote   = 24 << 10 // in bytes; a client that watches more tubes is not resumed
	maxClaims = 256      // a client that holds more jobs is not resumed
)

// Keep makes the conversation record its state. The conversation must be new.
func (c *Conversation) Keep() { c.record = &record{recorded: true, noted: true} }

// appendState appends the state of the session to state, within a turn.
func (c *Conversation) appendState(e *engine.Engine, state []byte, waits bool) []byte {
	producer, worker := c.record.sess.Roles()
	var flags byte
	for i, set := range [...]bool{waits, waits && c.wait.batch, producer, worker} {
		if set {
			flags |= 1 << i
		}
	}
	claims := e.Claims(c.record.sess, maxClaims+1, c.shared.claims[:0])
	c.shared.claims = claims
	if len(claims) > maxClaims || len(c.record.note) > maxNote {
		return append(state, lostFlag)
	}
	state = append(state, flags)
	if waits {
		waited, left := e.Wait(c.record.sess)
		if left == engine.Never {
			left = -1
		}
		state = binary.AppendVarint(binary.AppendUvarint(state, uint64(waited)), left)
	}
	state = binary.AppendUvarint(state, uint64(len(claims)))
	for _, k := range claims {
		state = binary.AppendUvarint(binary.AppendUvarint(state, k.ID), uint64(k.Reserves))
		state = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(state, uint64(k.For)), k.Left), k.At)
	}
	return state
}

// recordState records the state after a batch of commands, within its turn.
func (c *Conversation) recordState(e *engine.Engine) {
	r := c.record
	if c.sess == nil {
		return
	}
	c.shared.engine, r.sess = e, c.sess
	if r.changed {
		r.changed, r.noted, r.note = false, false, c.appendNote(r.note[:0])
	}
	r.state, r.recorded = c.appendState(e, r.state[:0], c.wait.phase == waiting), false
}

func (c *Conversation) appendNote(b []byte) []byte {
	var facts wire.Facts
	if c.want != nil {
		facts = c.want.facts
	}
	identity := ""
	if c.terms != nil && !c.stranger {
		identity = c.identity.Name()
	}
	names := c.sess.WatchedNames()
	b = appendString(appendString(binary.AppendUvarint(b, uint64(facts)), identity), c.sess.Using())
	b = binary.AppendUvarint(b, uint64(names.Len()))
	for i := range names.Len() {
		b = appendString(b, names.At(i))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Record returns the recorded parts that have changed since the last call. unused is the
// number of bytes of input that the driver has passed and that no command has used. ok is
// false if nothing has changed, or if a command is in progress. The slices are valid
// until the next batch.
func (c *Conversation) Record() (note, state []byte, unused int, ok bool) {
	r := c.record
	if r == nil || r.recorded || !c.Rests() {
		return nil, nil, 0, false
	}
	r.recorded = true
	if !r.noted {
		r.noted, note = true, r.note
	}
	return note, r.state, c.in.len(), true
}

// Rests reports whether no command is in progress, except for a waiting reserve.
func (c *Conversation) Rests() bool {
	switch {
	case c.record == nil, !c.out.empty(), c.parser.Discarding(), c.long.command != nil, c.closing.phase > open:
		return false
	case c.state == Settling:
		return c.record.refused
	}
	return c.state == Reading || c.state == Ready || c.state == Waiting || c.state == Opening
}

// Suspend returns the unused input of a conversation without a command in progress. It
// ends the conversation but not its session, because the engine no longer belongs to the
// leader.
func (c *Conversation) Suspend(reason error) (unused []byte, ok bool) {
	if !c.Rests() {
		return nil, false
	}
	unused = append([]byte(nil), c.in.unread()...)
	c.abandon(reason)
	return unused, true
}

// A Resumption is a decoded record.
type Resumption struct {
	Identity string // "" means the identity with which the client connected
	Claims   []engine.Claim
	Waits    bool
	Waited   int64 // in ns

	facts            wire.Facts
	using            []byte // nil means that the client uses and watches the default tube
	watching         [][]byte
	producer, worker bool
	batch            bool
	left             int64 // in ns, or engine.Never
}

var errRecord = errors.New("the record of a client's session is damaged")

// ReadRecord decodes a record. elapsed is the age of the record in ns.
func ReadRecord(note, state []byte, elapsed int64) (*Resumption, error) {
	r := &Resumption{left: engine.Never}
	d := decoder{b: note}
	if len(note) > 0 {
		r.facts = wire.Facts(d.uvarint())
		r.Identity, r.using = string(d.bytes()), d.bytes()
		for n := d.uvarint(); n > 0 && !d.failed; n-- {
			r.watching = append(r.watching, d.bytes())
		}
	}
	if d.failed || len(d.b) > 0 || !r.facts.Valid() {
		return nil, errRecord
	}
	if len(state) == 0 {
		return r, nil
	}
	flags := state[0]
	if flags >= lostFlag {
		return nil, errors.New("the client holds or watches too much to be resumed")
	}
	r.Waits, r.batch, r.producer, r.worker = flags&waitsFlag != 0, flags&batchFlag != 0, flags&producerFlag != 0, flags&workerFlag != 0
	d.b = state[1:]
	if r.Waits {
		r.Waited = int64(d.uvarint()) + elapsed
		if left := d.varint(); left >= 0 {
			r.left = max(0, left-elapsed)
		}
	}
	for n := d.uvarint(); n > 0 && !d.failed; n-- {
		k := engine.Claim{ID: d.uvarint(), Reserves: uint32(d.uvarint()), For: int64(d.uvarint()), Left: d.varint(), At: d.varint()}
		k.For += elapsed
		k.Left -= elapsed
		r.Claims = append(r.Claims, k)
	}
	if d.failed || len(d.b) > 0 {
		return nil, errRecord
	}
	return r, nil
}

// A decoder reads numbers and strings from b.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.skip(0)
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) skip(n int) {
	if n <= 0 {
		d.b, d.failed = nil, true
		return
	}
	d.b = d.b[n:]
}

// ResumeSession opens the session of a resumed client, like OpenSession.
func (c *Conversation) ResumeSession(e *engine.Engine, r *Resumption) {
	c.OpenSession(e)
	if r.using != nil {
		e.ResumeTubes(c.sess, r.using, r.watching)
	}
	if r.facts != 0 {
		c.want = &want{facts: r.facts, engine: e, job: &c.shared.job}
	}
	e.ResumeRoles(c.sess, r.producer, r.worker)
	c.record.sess, c.record.changed = c.sess, true
}

// Claim gives the claimed job to the session, within the turn of ResumeSession or a later
// one.
func (c *Conversation) Claim(e *engine.Engine, now int64, claim engine.Claim) engine.Outcome {
	return e.Claim(now, c.sess, claim)
}

// ResumeWait makes the reserve of a resumed client wait again, within a turn.
func (c *Conversation) ResumeWait(e *engine.Engine, now int64, r *Resumption) {
	c.shared.engine = e
	c.wait.phase, c.wait.batch = waiting, r.batch
	e.ResumeWait(now, c.sess, r.Waited, r.left)
}

// Resumed continues the conversation after its turns, with input that the last leader has
// not used. It returns false if the engine was not the leader's, so that there is no
// session.
func (c *Conversation) Resumed(now int64, input []byte) bool {
	c.progress.at = now
	c.closing.phase = open
	if len(input) > 0 {
		c.in.append(input)
		c.in.more = true
	}
	if c.sess == nil {
		return false
	}
	c.proceed()
	return true
}
