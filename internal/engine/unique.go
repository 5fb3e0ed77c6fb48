package engine

import (
	"bytes"
	"hash/maphash"
)

// A Key tells the jobs of a tube apart of which only one is put.
type Key struct {
	Name string // keys of the same name are the same

	// Of returns the key of a body, which it may write into the buffer, or be a part of the
	// body. If ok is false a job with that body has none, and any number of them is put.
	Of func(buf *[]byte, body []byte) (key []byte, ok bool)
}

// While says in which states a job has its key, so that no equal one is put.
type While uint8

const (
	WhileWaiting While = iota // Ready and Delayed
	WhileActive               // and Reserved
	WhilePresent              // and Buried
)

// UniqueMode says what the put of a duplicate does with the job that is there, unless that is reserved.
type UniqueMode uint8

const (
	KeepFirst UniqueMode = iota // nothing, but a more urgent priority counts
	Replace                     // it has the new body, priority and TTR
	Debounce                    // and is delayed anew, if it is not buried
)

// has reports whether a job in a state has its key.
func (w While) has(s State) bool {
	return s != Reserved && s != Buried || w == WhilePresent || s == Reserved && w == WhileActive
}

// A keyIndex finds jobs by their keys: lists of those whose keys have the same hash. It is all that
// there is of unique jobs. No Change tells of it: it follows from the jobs and the policies.
//
// I28. Unless it is outdated, the jobs in the lists are those of tubes with a Key whose state says that they have their key.
// If it is outdated some may be missing, and others may be there: so whoever finds one looks at it.
type keyIndex struct {
	first    map[uint32]slot // of the list of a hash: the last that came
	held     int             // jobs in the lists
	seed     maphash.Seed
	hashes   uint32    // the bits in which hashes differ: all, or few in tests
	buf      [2][]byte // scratch
	outdated bool      // tubes with jobs have another Key than before
	from     slot      // how far Tick has come with all jobs since then
}

// A keyLink is the place of a job in a list, beside its record in the slab.
type keyLink struct {
	hash          uint32 // 0: it is in none
	before, after slot
}

// maxEqualHashes is how many jobs of a list are looked at. There are more only while the index is outdated.
const maxEqualHashes = 64

// KeysHeld returns how many jobs have a key, and whether those are all: for some turns after policies have
// changed, equal jobs may be put beside others whose keys are not known yet.
func (e *Engine) KeysHeld() (n int, all bool) { return e.keys.held, !e.keys.outdated }

func (p *Policy) key() *Key {
	if p == nil {
		return nil
	}
	return p.Unique
}

// hashKey returns the hash of a key of a tube, which is not 0.
func (e *Engine) hashKey(t *tube, key []byte) uint32 {
	if e.keys.first == nil {
		e.keys.first, e.keys.seed = make(map[uint32]slot), maphash.MakeSeed()
	}
	return max(1, (uint32(maphash.Bytes(e.keys.seed, key))^t.num*0x9e3779b1)&e.keys.hashes)
}

// findKey returns the hash of the key of a body that is put into a tube with a Key, or 0: it has none; and a job
// that has the same key now, or none.
func (e *Engine) findKey(now int64, t *tube, body []byte) (hash uint32, equal slot) {
	x, p := &e.keys, t.policy
	e.turnWork += len(body) / keyBytesPerUnit
	key, ok := p.Unique.Of(&x.buf[0], body)
	if !ok {
		e.notePolicy(WithoutKey, t.name)
		return 0, none
	}
	hash = e.hashKey(t, key)
	equal, there := x.first[hash]
	for n := 0; there && equal != none && n < maxEqualHashes; n++ {
		j := e.jobs.at(equal)
		if other, ok := p.Unique.Of(&x.buf[1], e.body(j)); ok && bytes.Equal(key, other) && e.hasKey(now, t, j) {
			return hash, equal
		}
		equal = e.jobs.keys.at(equal).after
	}
	return hash, none
}

// hasKey reports whether a job with a key of a tube's has it now: one that is stale is as good as gone.
func (e *Engine) hasKey(now int64, t *tube, j *job) bool {
	return j.tube() == t.num && t.policy.UniqueWhile.has(j.state()) &&
		(j.state() == Reserved || e.stale(now, t.policy, j) == NumPolicyEvents)
}

// duplicate answers a put that is one of a job that is there.
func (e *Engine) duplicate(now int64, t *tube, i slot, spec Spec, body []byte) (id uint64, o Outcome) {
	e.lastID-- // it uses up none
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
	e.relied++
	t.duplicates++
	e.notePolicy(Deduplicated, t.name)
	return j.id, Duplicate
}

// noteKey puts a job of a tube with a Key into the list where it belongs, or takes it out of it.
func (e *Engine) noteKey(t *tube, i slot, j *job) {
	has, listed := t.policy.UniqueWhile.has(j.state()), e.jobs.keys.at(i).hash != 0
	if has == listed {
		return
	}
	if listed {
		e.dropKey(i)
		return
	}
	e.turnWork += int(j.bodyLen) / keyBytesPerUnit
	if key, ok := t.policy.Unique.Of(&e.keys.buf[0], e.body(j)); ok {
		e.listKey(i, e.hashKey(t, key))
	}
}

// listKey puts a job into the list of a hash.
func (e *Engine) listKey(i slot, hash uint32) {
	x := &e.keys
	l := keyLink{hash, none, none}
	if after, there := x.first[hash]; there {
		l.after = after
		next := e.jobs.keys.at(after)
		next.before = i
		e.jobs.keys.set(after, next)
	}
	x.first[hash] = i
	x.held++
	e.jobs.keys.set(i, l)
}

// dropKey takes a job out of its list, if it is in one.
func (e *Engine) dropKey(i slot) {
	x, links := &e.keys, &e.jobs.keys
	l := links.at(i)
	if l.hash == 0 {
		return
	}
	if l.after != none {
		next := links.at(l.after)
		next.before = l.before
		links.set(l.after, next)
	}
	switch {
	case l.before != none:
		prev := links.at(l.before)
		prev.after = l.after
		links.set(l.before, prev)
	case l.after != none:
		x.first[l.hash] = l.after
	default:
		delete(x.first, l.hash)
	}
	x.held--
	links.set(i, keyLink{})
}

// changeKey notes that a tube is about to have another policy.
func (e *Engine) changeKey(t *tube, p *Policy) {
	before, after := t.policy.key(), p.key()
	t.keyed = after != nil
	same := before == after || before != nil && after != nil && before.Name == after.Name
	if (!same || after != nil && t.policy.UniqueWhile != p.UniqueWhile) && t.jobs() > 0 {
		e.keys.outdated, e.keys.from = true, 0
	}
}

// updateKeys looks at all jobs of tubes whose keys may be others, or at a slice of them, and
// reports whether it is through.
func (e *Engine) updateKeys(atOnce bool) bool {
	x := &e.keys
	for x.outdated && int(x.from/slotsPerPage) < len(e.jobs.pages) {
		if !atOnce && e.tickSpent() {
			return false
		}
		i, ok := e.jobs.slots.nextUsed(x.from)
		if !ok {
			x.from = (x.from/slotsPerPage + 1) * slotsPerPage
			e.turnWork++
			continue
		}
		x.from = i + 1
		e.turnWork++
		e.dropKey(i)
		if j := e.jobs.at(i); e.tubeOfJob(j).keyed {
			e.turnWork++
			e.noteKey(e.tubeOfJob(j), i, j)
		}
	}
	x.outdated = false
	return true
}
