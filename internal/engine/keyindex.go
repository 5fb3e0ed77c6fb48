package engine

import "math/bits"

// A keyTable finds jobs by a hash. It is a hash table with linear hashing: it has about
// as many buckets as jobs, and grows, or shrinks, by a bucket or two at a time, so that
// no put pays for all. A bucket has a list of hashes, which is short, and of each the
// first of a list of its jobs, of which there may be any number.
type keyTable struct {
	buckets []*[slotsPerPage]slot // the first jobs; or none
	n       uint32                // buckets; a hash is in the one that its lowest bits say, as many as there are buckets for
	held    uint32                // jobs
	links   sparse[keyLink]
}

// A keyLink is the place of a job in a keyTable.
type keyLink struct {
	hash          uint32 // 0: it is not there
	next          slot   // of the first of its hash: the first of another hash
	before, after slot   // of the same hash
}

func (x *keyTable) place(bucket uint32) *slot {
	return &x.buckets[bucket/slotsPerPage][bucket%slotsPerPage]
}

// link returns the place of a job that is in the table.
func (x *keyTable) link(i slot) *keyLink { return &x.links[i/slotsPerPage][i%slotsPerPage] }

// bucketOf returns the bucket of a hash.
func (x *keyTable) bucketOf(hash uint32) uint32 {
	mask := uint32(1)<<bits.Len32(x.n-1) - 1
	if b := hash & mask; b < x.n {
		return b
	}
	return hash & (mask >> 1)
}

// firstOf returns what refers to the first job of a hash, or to none.
func (x *keyTable) firstOf(hash uint32) *slot {
	at := x.place(x.bucketOf(hash))
	for *at != none {
		l := x.link(*at)
		if l.hash == hash {
			break
		}
		at = &l.next
	}
	return at
}

// add adds a job, after the first of its hash.
func (x *keyTable) add(i slot, hash uint32) {
	if x.held++; x.held > x.n {
		x.grow()
	}
	at, l := x.firstOf(hash), x.links.ref(i)
	*l = keyLink{hash, none, none, none}
	if *at == none {
		*at = i
		return
	}
	first := x.link(*at)
	l.before, l.after, first.after = *at, first.after, i
	if l.after != none {
		x.link(l.after).before = i
	}
}

// remove takes a job out, if it is there.
func (x *keyTable) remove(i slot) {
	if x.links.at(i).hash == 0 {
		return
	}
	l := x.link(i)
	if l.after != none {
		x.link(l.after).before = l.before
	}
	switch {
	case l.before != none:
		x.link(l.before).after = l.after
	case l.after != none:
		*x.firstOf(l.hash) = l.after
		x.link(l.after).next = l.next
	default:
		*x.firstOf(l.hash) = l.next
	}
	*l = keyLink{}
	x.held--
	for k := 0; k < 2 && x.held < x.n/2; k++ { // so that the buckets become fewer as fast as the jobs
		x.shrink()
	}
}

// partner returns the bucket from which another one was split.
func partner(bucket uint32) uint32 { return bucket - 1<<(bits.Len32(bucket)-1) }

// grow adds a bucket, for some of the hashes of its partner.
func (x *keyTable) grow() {
	b := x.n
	if x.n++; b%slotsPerPage == 0 {
		page := new([slotsPerPage]slot)
		for k := range page {
			page[k] = none
		}
		x.buckets = append(x.buckets, page)
	}
	if b == 0 {
		return
	}
	to := x.place(b)
	for at := x.place(partner(b)); *at != none; {
		i := *at
		l := x.link(i)
		if x.bucketOf(l.hash) != b {
			at = &l.next
			continue
		}
		*at, l.next, *to = l.next, *to, i
	}
}

// shrink gives the hashes of the last bucket back to its partner.
func (x *keyTable) shrink() {
	x.n--
	from, at := x.place(x.n), x.place(partner(x.n))
	for *at != none {
		at = &x.link(*at).next
	}
	*at, *from = *from, none
	if x.n%slotsPerPage == 0 {
		x.buckets = x.buckets[:x.n/slotsPerPage]
	}
}
