package engine

// An index maps job ids to slots. It is a radix tree: each node has 16 places, one for
// each value of four bits of an id. The root stands for the highest bits in use. A place
// contains a job if no other id has the same prefix, otherwise the node for the next four
// bits. Consecutive ids cost little more than 4 bytes each, distant ids some tens of
// bytes. The tree is never rebuilt.
//
// Most jobs are looked up soon after their neighbors. The index therefore caches the last
// node for each recently used group of 16 consecutive ids.
//
// I11. The tree contains n jobs, each on the path of its id. Only the root and the nodes
// on the path of the last added id can be empty, because the next id will be added there.
// Each node in recent is on the path of its ids.
type index struct {
	jobs   *jobSlab
	nodes  slab[node]
	root   uint32
	bits   uint // number of id bits that the root distinguishes
	tip    uint64
	recent [64]recentNode
	n      uint64
}

// A node contains slots of jobs and numbers of child nodes. The bit isNode marks the
// number of a node.
type node [1 << idBits]uint32

const (
	idBits = 4
	isNode = 1 << 31

	// maxJobs is the maximum number of jobs in an engine. All slots are less than isNode.
	maxJobs = isNode - slotsPerPage
)

// A recentNode caches the last node found on the shared path of 16 consecutive ids.
type recentNode struct {
	prefix uint64 // the ids without their last four bits
	node   *node  // the node, or nil
	shift  uint   // shift of the bits that the node distinguishes
}

func newIndex(jobs *jobSlab) index {
	x := index{jobs: jobs, nodes: newSlab[node](), bits: idBits}
	x.root = x.newNode()
	return x
}

func (x *index) newNode() uint32 {
	number, n := x.nodes.alloc()
	for k := range n {
		n[k] = none
	}
	return number
}

// place returns the place of an id in a node that distinguishes the bits starting at
// shift.
func (n *node) place(id uint64, shift uint) *uint32 { return &n[id>>shift%(1<<idBits)] }

func (n *node) empty() bool {
	for k := len(n) - 1; k >= 0; k-- { // the jobs with the lower ids first
		if n[k] != none {
			return false
		}
	}
	return true
}

// lastNode returns the last node on the path of an id, and the shift of its bits there.
func (x *index) lastNode(id uint64) (n *node, shift uint) {
	recent := &x.recent[id>>idBits%uint64(len(x.recent))]
	if recent.node == nil || recent.prefix != id>>idBits {
		*recent = recentNode{id >> idBits, x.nodes.at(x.root), x.bits - idBits}
	}
	for {
		next := *recent.node.place(id, recent.shift)
		if next == none || next&isNode == 0 {
			return recent.node, recent.shift
		}
		recent.node, recent.shift = x.nodes.at(next&^isNode), recent.shift-idBits
	}
}

// forget removes a node on the path of an id from recent.
func (x *index) forget(n *node, id uint64, shift uint) {
	first := id >> (shift + idBits) << shift
	for k := range min(uint64(len(x.recent)), 1<<shift) {
		if recent := &x.recent[(first+k)%uint64(len(x.recent))]; recent.node == n {
			*recent = recentNode{}
		}
	}
}

// find returns the slot of a job, or none if there is no such job.
func (x *index) find(id uint64) slot {
	if id>>x.bits > 0 {
		return none
	}
	n, shift := x.lastNode(id)
	i := *n.place(id, shift)
	if i != none && shift > 0 && x.jobs.at(i).id != id {
		return none
	}
	return i
}

// insert adds a job. No other job can have its id.
func (x *index) insert(i slot, id uint64) {
	for id>>x.bits > 0 {
		old := x.root
		x.root = x.newNode()
		x.nodes.at(x.root)[0] = old | isNode
		x.bits += idBits
	}
	n, shift := x.lastNode(id)
	place := n.place(id, shift)
	for *place != none { // move both jobs down until their paths differ
		other := *place
		number := x.newNode()
		*place = number | isNode
		shift -= idBits
		n = x.nodes.at(number)
		*n.place(x.jobs.at(other).id, shift) = other
		place = n.place(id, shift)
	}
	*place = i
	x.n++
	if old := x.tip; old>>idBits != id>>idBits {
		x.tip = id
		x.prune(old)
	}
}

// remove removes an existing job.
func (x *index) remove(id uint64) {
	n, shift := x.lastNode(id)
	*n.place(id, shift) = none
	x.n--
	if id>>idBits != x.tip>>idBits && n.empty() {
		x.prune(id)
	}
}

// prune frees the empty nodes on the path of an id.
func (x *index) prune(id uint64) {
	var way [64 / idBits]uint32
	depth, shift := 0, x.bits-idBits
	way[0] = x.root
	for {
		next := *x.nodes.at(way[depth]).place(id, shift)
		if next == none || next&isNode == 0 {
			break
		}
		depth, shift = depth+1, shift-idBits
		way[depth] = next &^ isNode
	}
	for ; depth > 0; depth-- {
		n := x.nodes.at(way[depth])
		if !n.empty() || id>>(shift+idBits) == x.tip>>(shift+idBits) {
			return
		}
		x.forget(n, id, shift)
		x.nodes.free(way[depth])
		shift += idBits
		*x.nodes.at(way[depth-1]).place(id, shift) = none
	}
}
