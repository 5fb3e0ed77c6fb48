package engine

import "hash/maphash"

// A keyIndex finds jobs by the hash of their key. The jobs with the same hash form a
// list, which can have any length. The index is not logged, because it follows from the
// jobs and the policies.
//
// I28. Unless a jobPass is under way, the index contains exactly the jobs whose tube has
// a Key and whose state blocks duplicates. During a pass, jobs can be missing and other
// jobs present, so findKey examines each job that it finds.
type keyIndex struct {
	first table[uint32, slot] // first job of each hash
	links sparse[keyLink]
	held  int // number of jobs

	seed maphash.Seed
	mask uint32    // bits in which hashes can differ: all bits, or few in tests
	buf  [2][]byte // scratch
}

// A keyLink is a job's entry in a keyIndex.
type keyLink struct {
	hash          uint32 // 0 if the job is absent
	before, after slot   // neighbors with the same hash
}

// firstOf returns the first job with a hash, or none.
func (x *keyIndex) firstOf(hash uint32) slot {
	if i, ok := x.first.of[hash]; ok {
		return i
	}
	return none
}

// add adds a job as the first with its hash.
func (x *keyIndex) add(i slot, hash uint32) {
	x.held++
	first := x.firstOf(hash)
	*x.links.ref(i) = keyLink{hash, none, first}
	if first != none {
		x.links.ref(first).before = i
	}
	x.first.set(hash, i)
}

// remove removes a job, and reports whether the index contained it.
func (x *keyIndex) remove(i slot) bool {
	l := x.links.at(i)
	if l.hash == 0 {
		return false
	}
	if l.after != none {
		x.links.ref(l.after).before = l.before
	}
	switch {
	case l.before != none:
		x.links.ref(l.before).after = l.after
	case l.after != none:
		x.first.set(l.hash, l.after)
	default:
		x.first.remove(l.hash)
	}
	*x.links.ref(i) = keyLink{}
	x.held--
	return true
}
