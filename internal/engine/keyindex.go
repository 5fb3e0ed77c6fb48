package engine

import "math/bits"

// A keyTable finds jobs by hash. It uses linear hashing: it has about as many buckets as
// jobs. It grows or shrinks by one or two buckets at a time, so that no put pays for a
// rebuild. A bucket is a short list of hashes. For each hash, it contains the first of a
// list of jobs, which can have any length.
type keyTable struct {
	buckets []*[slotsPerPage]slot // the first jobs, or none
	n       uint32                // number of buckets; the lowest bits of a hash select its bucket
	held    uint32                // jobs
	links   sparse[keyLink]
}

// A keyLink is a job's entry in a keyTable.
type keyLink struct {
	hash          uint32 // 0 if the job is absent
	next          slot   // for the first job of its hash: the first job of another hash
	before, after slot   // neighbors with the same hash
}

func (x *keyTable) place(bucket uint32) *slot {
	return &x.buckets[bucket/slotsPerPage][bucket%slotsPerPage]
}

// link returns the entry of a job in the table.
func (x *keyTable) link(i slot) *keyLink { return &x.links[i/slotsPerPage][i%slotsPerPage] }

// bucketOf returns the bucket of a hash.
func (x *keyTable) bucketOf(hash uint32) uint32 {
	mask := uint32(1)<<bits.Len32(x.n-1) - 1
	if b := hash & mask; b < x.n {
		return b
	}
	return hash & (mask >> 1)
}

// firstOf returns a pointer to the first job of a hash, or to none.
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

// add inserts a job after the first job with its hash.
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

// remove removes a job if the table contains it.
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
	for k := 0; k < 2 && x.held < x.n/2; k++ { // so that the buckets shrink as fast as the jobs
		x.shrink()
	}
}

// partner returns the bucket from which a bucket was split.
func partner(bucket uint32) uint32 { return bucket - 1<<(bits.Len32(bucket)-1) }

// grow adds a bucket and moves some hashes to it from its partner.
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

// shrink returns the hashes of the last bucket to its partner.
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
