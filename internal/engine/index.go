package engine

// index finds jobs by id. It is a linear hash table (Litwin, 1980): it grows
// and shrinks by one bucket at a time, so that no put ever waits for a rehash.
// Buckets are chains through the records of the jobs.
//
// I11. Each job is in the chain of bucketOf(its id), and n counts them.
type index struct {
	jobs    *jobSlab
	pages   [][]slot // buckets, bucketsPerPage to a page
	buckets uint64   // in use; at least minBuckets
	mask    uint64   // 2^k - 1, with 2^k <= buckets <= 2^(k+1)
	n       uint64   // jobs
}

const (
	bucketsPerPage = 1024
	minBuckets     = bucketsPerPage
)

func newIndex(jobs *jobSlab) index {
	x := index{jobs: jobs, mask: minBuckets - 1}
	for x.buckets < minBuckets {
		x.addBucket()
	}
	return x
}

// bucketOf returns the bucket of an id. Sixteen consecutive ids have sixteen
// consecutive buckets, one cache line: most jobs are looked up soon after their
// neighbours, and mixing all bits was three times slower with a million jobs. The
// higher bits are mixed, because the jobs that stay behind when others are done
// may share them; then a chain has sixteen jobs at worst.
func (x *index) bucketOf(id uint64) uint64 {
	h := id >> 4 * 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	h = (h^h>>32)<<4 | id&15
	if b := h & (2*x.mask + 1); b < x.buckets {
		return b
	}
	return h & x.mask
}

func (x *index) bucket(b uint64) *slot { return &x.pages[b/bucketsPerPage][b%bucketsPerPage] }

// find returns the slot of a job, or none.
func (x *index) find(id uint64) slot {
	i := *x.bucket(x.bucketOf(id))
	for i != none {
		j := x.jobs.at(i)
		if j.id == id {
			return i
		}
		i = j.chain
	}
	return none
}

func (x *index) insert(i slot, j *job) {
	x.link(i, j)
	if x.n++; x.n > x.buckets {
		x.split()
	}
}

func (x *index) link(i slot, j *job) {
	head := x.bucket(x.bucketOf(j.id))
	j.chain = *head
	*head = i
}

func (x *index) remove(i slot, j *job) {
	p := x.bucket(x.bucketOf(j.id))
	for *p != i {
		p = &x.jobs.at(*p).chain
	}
	*p = j.chain
	x.n--
	// Four at a time, so that the buckets keep pace with a queue that drains.
	for k := 0; k < 4 && x.n < x.buckets/4 && x.buckets > minBuckets; k++ {
		x.merge()
	}
}

func (x *index) addBucket() {
	if x.buckets%bucketsPerPage == 0 {
		x.pages = append(x.pages, make([]slot, bucketsPerPage))
	}
	x.buckets++
	*x.bucket(x.buckets - 1) = none
}

// split adds a bucket and moves the jobs that hash to it, all from one chain.
func (x *index) split() {
	if x.buckets == 2*(x.mask+1) {
		x.mask = 2*x.mask + 1
	}
	from := x.buckets & x.mask
	x.addBucket()
	x.relink(from)
}

// expect makes the buckets for so many jobs at once. Splitting them one by one
// while the jobs come would move each job ten times on the way to a million.
func (x *index) expect(jobs uint64) {
	for x.buckets < jobs {
		x.split()
	}
}

// merge removes the last bucket and moves its chain to where it came from.
func (x *index) merge() {
	last := x.buckets - 1
	i := *x.bucket(last)
	x.buckets--
	if x.buckets == x.mask+1 && x.mask+1 > minBuckets {
		x.mask >>= 1
	}
	for i != none {
		j := x.jobs.at(i)
		next := j.chain
		x.link(i, j)
		i = next
	}
	if x.buckets%bucketsPerPage == 0 {
		x.pages[len(x.pages)-1] = nil
		x.pages = x.pages[:len(x.pages)-1]
	}
}

func (x *index) relink(b uint64) {
	head := x.bucket(b)
	i := *head
	*head = none
	for i != none {
		j := x.jobs.at(i)
		next := j.chain
		x.link(i, j)
		i = next
	}
}
