package engine

import (
	"bytes"
	"hash/maphash"
)

// A Key computes the keys of jobs in a tube whose policy accepts one job per key.
type Key struct {
	Name string // keys with the same name are computed in the same way

	// Of returns the key of a body. It can be part of the body, or be written into buf.
	// If ok is false, the body has no key, and the policy allows any number of such jobs.
	Of func(buf *[]byte, body []byte) (key []byte, ok bool)
}

// While defines the states in which a job blocks duplicates.
type While uint8

const (
	WhileWaiting While = iota // Ready and Delayed
	WhileActive               // also Reserved
	WhilePresent              // also Buried
)

// UniqueMode is the effect of a duplicate put on the existing job. A reserved job is
// never changed.
type UniqueMode uint8

const (
	KeepFirst UniqueMode = iota // change nothing, except to a more urgent priority
	Replace                     // replace body, priority and TTR
	Debounce                    // like Replace; also restarts the delay, unless the job is buried
)

// has reports whether a job in state s blocks duplicates.
func (w While) has(s State) bool {
	return s != Reserved && s != Buried || w == WhilePresent || s == Reserved && w == WhileActive
}

// maxEqualHashes is the number of jobs per hash that findKey examines, the newest first.
// There are more jobs with the same hash only if some are stale, or while the index is
// outdated.
const maxEqualHashes = 64

// KeysHeld returns the number of jobs with a key. all is false for some turns after a
// change of policies: during these turns, duplicates of jobs that are not indexed yet are
// accepted.
func (e *Engine) KeysHeld() (n int, all bool) { return e.keys.held, !e.jobPass.underway() }

func (p *Policy) key() *Key {
	if p == nil {
		return nil
	}
	return p.Unique
}

// hashKey returns the hash of a key in a tube. It is never 0.
func (e *Engine) hashKey(t *tube, key []byte) uint32 {
	return max(1, (uint32(maphash.Bytes(e.keys.seed, key))^t.num*0x9e3779b1)&e.keys.mask)
}

// findKey returns the hash of the key of a body that is put into a tube with a Key, or 0
// if the body has no key. It also returns a job with the same key, or none.
func (e *Engine) findKey(now int64, t *tube, body []byte) (hash uint32, equal slot) {
	x, p := &e.keys, t.policy
	e.turnWork += len(body) / keyBytesPerUnit
	key, ok := p.Unique.Of(&x.buf[0], body)
	if !ok {
		e.notePolicy(PolicyAct{WithoutKey, t.name, 0, ""})
		return 0, none
	}
	hash = e.hashKey(t, key)
	equal = x.firstOf(hash)
	for n := 0; equal != none && n < maxEqualHashes; n++ {
		j := e.jobs.at(equal)
		e.turnWork += int(j.bodyLen) / keyBytesPerUnit
		if other, ok := p.Unique.Of(&x.buf[1], e.body(j)); ok && bytes.Equal(key, other) && e.hasKey(now, t, j) {
			return hash, equal
		}
		equal = x.links.at(equal).after
	}
	return hash, none
}

// hasKey reports whether a job currently blocks duplicates in a tube.
func (e *Engine) hasKey(now int64, t *tube, j *job) bool {
	return j.tube() == t.num && t.policy.UniqueWhile.has(j.state()) &&
		(j.state() == Reserved || e.stale(now, t.policy, j) == NumPolicyEvents)
}

// duplicate answers a put of a job that equals an existing one.
func (e *Engine) duplicate(now int64, t *tube, i slot, spec Spec, body []byte) (id uint64, o Outcome) {
	e.lastID-- // a duplicate uses up no id
	j := e.jobs.at(i)
	var a Alteration
	switch mode := t.policy.UniqueMode; {
	case j.state() == Reserved:
	case mode == KeepFirst:
		if spec.Pri < j.pri {
			a.Pri = &spec.Pri
		}
	default:
		a.Pri, a.TTR = &spec.Pri, &spec.TTR
		if !bytes.Equal(body, e.body(j)) {
			a.Body = &body
		}
		if mode == Debounce && j.state() != Buried {
			a.Delay = &spec.Delay
		}
	}
	if a == (Alteration{}) {
		o = e.admit(NoChange, t, 0)
	} else {
		o = e.AlterJob(now, j.id, a)
	}
	if o != OK {
		return 0, o
	}
	e.duplicatePuts++
	t.counts.Duplicates++
	e.notePolicy(PolicyAct{Deduplicated, t.name, j.id, ""})
	return j.id, Duplicate
}

// noteKey adds a job of a tube with a Key to the index or removes it, depending on its
// state.
func (e *Engine) noteKey(t *tube, i slot, j *job) {
	has, listed := t.policy.UniqueWhile.has(j.state()), e.keys.links.at(i).hash != 0
	if has == listed {
		return
	}
	if listed {
		e.keys.remove(i)
		return
	}
	e.turnWork += int(j.bodyLen) / keyBytesPerUnit
	if key, ok := t.policy.Unique.Of(&e.keys.buf[0], e.body(j)); ok {
		e.keys.add(i, e.hashKey(t, key))
	}
}

// changeKey records that the policy of a tube is about to change to p.
func (e *Engine) changeKey(t *tube, p *Policy) {
	before, after := t.policy.key(), p.key()
	t.keyed = after != nil
	same := before == after || before != nil && after != nil && before.Name == after.Name
	if (!same || after != nil && t.policy.UniqueWhile != p.UniqueWhile) && t.jobs() > 0 {
		e.jobPass.begin()
	}
}
