package engine

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
)

// A Failure describes how the last attempt of a job ended, and since when the job is
// buried.
type Failure struct {
	End      Ends   // a single end; zero if the attempt has not ended, or ended with the server
	Policy   string // setting that exhausted or expired the job; empty if none did
	At       int64  // end of the attempt or, without an attempt, the burial, in ms since 1970
	Took     int64  // ms; duration of the attempt
	Attempt  uint32 // zero if the job was never reserved
	Buried   int64  // ms since 1970; last burial of the job, or zero
	Identity string // identity of the worker; empty if it had none
	Address  netip.AddrPort
	Note     string // reason that the worker gave, or empty
}

// A FailureRecord is an encoded Failure. An empty record means that there is no Failure.
// Journals and clusters contain this encoding, which never changes:
//
//	failure  := flags u8  at  took  attempt  [buried]  identity  address  note
//	flags    := end + 8 * policy + 64 if there is buried
//	end      := 0 none, 1 timeout, 2 lost, 3 release, 4 bury, 5 taken
//	policy   := 0 none, 1 max-attempts, 2 max-timeouts, 3 max-releases, 4 ttl
//	at       := varint, ms since 1970
//	took     := varint, ms
//	attempt  := varint
//	buried   := varint, ms after at
//	identity := length u8, text
//	address  := length u8: 0, 6 or 18; IPv4 or IPv6 address, port u16 little-endian
//	note     := length u8, text
type FailureRecord []byte

const (
	// MaxNote is the maximum length of a note, in bytes.
	MaxNote = 200

	// MaxFailure is the maximum length of a FailureRecord, in bytes.
	MaxFailure = 1 + 3*binary.MaxVarintLen64 + binary.MaxVarintLen32 + 1 + maxIdentity + 1 + maxAddress + 1 + MaxNote

	maxIdentity   = 100 // bytes; the rest of a longer name is cut off
	maxAddress    = 18  // bytes
	failurePolicy = 1 << 3
	failureBuried = 1 << 6
)

// failurePolicies are the settings that Failure.Policy can name, by their number.
var failurePolicies = []string{"", OutOfAttempts.String(), OutOfTimeouts.String(), OutOfReleases.String(), Expired.String()}

// A Worker is a Waiter that identifies its client. The address has no zone. It is the
// zero AddrPort for a client without an address.
type Worker interface {
	Worker() (identity string, address netip.AddrPort)
}

// Valid reports whether Decode returns a Failure.
func (r FailureRecord) Valid() bool {
	_, _, ok := r.decode()
	return ok
}

// Decode returns the Failure of a record. ok is false for an empty record, and for bytes
// that no version writes.
func (r FailureRecord) Decode() (f Failure, ok bool) {
	f, who, ok := r.decode()
	f.Identity, f.Note = string(who.identity), string(who.note)
	return f, ok
}

// worker is the part of a record after its numbers.
type worker struct{ all, identity, address, note []byte }

// decode decodes a record, without the texts of the Failure.
func (r FailureRecord) decode() (f Failure, w worker, ok bool) {
	if len(r) == 0 {
		return f, w, false
	}
	flags, rest := r[0], r[1:]
	for _, n := range [...]*int64{&f.At, &f.Took, nil, &f.Buried} {
		if n == &f.Buried && flags&failureBuried == 0 {
			break
		}
		v, length := binary.Uvarint(rest)
		if length <= 0 {
			return Failure{}, w, false
		}
		if rest = rest[length:]; n == nil {
			f.Attempt = uint32(v)
		} else {
			*n = int64(v)
		}
	}
	if flags&failureBuried != 0 {
		f.Buried += f.At
	}
	w.all = rest
	for _, part := range [...]*[]byte{&w.identity, &w.address, &w.note} {
		if len(rest) == 0 || int(rest[0]) >= len(rest) {
			return Failure{}, w, false
		}
		*part, rest = rest[1:1+rest[0]], rest[1+rest[0]:]
	}
	policy := int(flags % failureBuried / failurePolicy)
	f.End = 1 << (flags % failurePolicy) >> 1
	if len(rest) > 0 || flags >= 2*failureBuried || policy >= len(failurePolicies) || f.End > Taken || len(w.address) > 0 && f.Address.UnmarshalBinary(w.address) != nil {
		return Failure{}, w, false
	}
	f.Policy = failurePolicies[policy]
	return f, w, true
}

// appendNumbers appends the part of a record before the worker.
func (f *Failure) appendNumbers(b []byte) []byte {
	flags := bits.Len8(uint8(f.End)) + failurePolicy*slices.Index(failurePolicies, f.Policy)
	if f.Buried != 0 {
		flags |= failureBuried
	}
	b = binary.AppendUvarint(append(b, byte(flags)), uint64(f.At))
	b = binary.AppendUvarint(b, uint64(f.Took))
	b = binary.AppendUvarint(b, uint64(f.Attempt))
	if f.Buried != 0 {
		b = binary.AppendUvarint(b, uint64(max(f.Buried-f.At, 0))) // the clock of a new leader can be behind
	}
	return b
}

// Append appends the record of f.
func (f *Failure) Append(b []byte) FailureRecord {
	b = f.appendNumbers(b)
	identity := f.Identity[:min(len(f.Identity), maxIdentity)]
	b = append(append(b, byte(len(identity))), identity...)
	b = append(b, 0)
	if at := len(b); f.Address.IsValid() {
		b, _ = f.Address.AppendBinary(b)
		b[at-1] = byte(len(b) - at)
	}
	return append(append(b, byte(len(f.Note))), f.Note...)
}

// A failurePlace is the place of a FailureRecord among the bodies.
//
// I29. Only slots of jobs have a failurePlace.
//
// The end of an attempt and a burial create a record, which stays until the job is
// deleted.
type failurePlace struct{ slot, length uint32 }

// failureBytes is the approximate memory of a place in Engine.failures, in bytes.
const failureBytes = 20

// failureOf returns the record of the job in a slot. It is valid until the next call of
// the engine.
func (e *Engine) failureOf(i slot) FailureRecord {
	at := e.failures.of[i] // the zero value is the place of an empty record
	return e.bodies.get(at.slot, at.length)
}

// setFailure sets or removes the record of the job in a slot.
func (e *Engine) setFailure(i slot, r FailureRecord) {
	at, n := e.failures.of[i], uint32(len(r))
	if n > 0 && at.length > 0 && classOf(n) == classOf(at.length) {
		copy(e.bodies.get(at.slot, n), r)
		e.failures.of[i] = failurePlace{at.slot, n}
		return
	}
	e.bodies.free(at.slot, at.length)
	if n == 0 {
		e.failures.remove(i)
		return
	}
	e.failures.set(i, failurePlace{e.bodies.put(r), n})
}

// noteEnd records how the attempt of a reserved job ends, and keeps its worker's note.
// The Log must have admitted the change.
func (e *Engine) noteEnd(i slot, j *job, end Ends) {
	var note []byte
	if r := e.failureOf(i); len(r) > 0 && r[0]%failurePolicy == 0 { // it can contain a note of this attempt
		if f, w, _ := r.decode(); f.Attempt == e.jobs.held(j).Reserves {
			note = w.note
		}
	}
	e.noteAttempt(i, j, end, note)
}

func (e *Engine) noteAttempt(i slot, j *job, end Ends, note []byte) {
	c := e.jobs.held(j)
	f := Failure{End: end, At: e.milliseconds(), Took: max(e.now-c.when, 0) / 1e6, Attempt: c.Reserves}
	if w, ok := e.sessions[c.holder].waiter.(Worker); ok {
		f.Identity, f.Address = w.Worker()
	}
	b := f.Append(e.failureBuf[:0])
	b[len(b)-1] = byte(len(note))
	e.failureBuf = append(b, note...)
	e.setFailure(i, e.failureBuf)
}

// noteBurial records that a job is buried. policy is the setting that caused it, or
// empty.
func (e *Engine) noteBurial(i slot, j *job, policy string) {
	f, w, ok := e.failureOf(i).decode()
	f.Policy, f.Buried = policy, e.milliseconds()
	if ok {
		e.failureBuf = append(f.appendNumbers(e.failureBuf[:0]), w.all...)
	} else {
		f.At, f.Attempt = f.Buried, e.jobs.coldOf(j).Reserves
		e.failureBuf = f.Append(e.failureBuf[:0])
	}
	e.setFailure(i, e.failureBuf)
}

// milliseconds returns the time of the turn, in ms since 1970.
func (e *Engine) milliseconds() int64 { return max(e.now+e.opt.Epoch, 0) / 1e6 }

// loggedFailure returns a copy of the record of the job in a slot, for a Change.
func (e *Engine) loggedFailure(i slot) FailureRecord {
	r := e.failureOf(i)
	if len(r) == 0 {
		return nil
	}
	at := len(e.changedFailures)
	e.changedFailures = append(e.changedFailures, r...)
	return e.changedFailures[at:len(e.changedFailures):len(e.changedFailures)]
}

// SetFailure sets the failure of an imported job.
func (e *Engine) SetFailure(id uint64, r FailureRecord) Outcome {
	i, j := e.lookup(id)
	if i == none {
		return NotFound
	}
	if o := e.admit(JobState, e.tubeOfJob(j), j.bodyLen); o != OK {
		return o
	}
	e.setFailure(i, r)
	e.emitState(i, j)
	return OK
}

// Note stores a reason of up to MaxNote bytes for the current attempt of a job that the
// session has reserved.
func (e *Engine) Note(s *Session, id uint64, text []byte) Outcome {
	i, j := e.lookupHeld(s, id)
	if i == none {
		return NotFound
	}
	if o := e.admit(JobState, e.tubeOfJob(j), j.bodyLen); o != OK {
		return o
	}
	e.noteAttempt(i, j, 0, text)
	e.emitState(i, j)
	return OK
}
