package main

// A step is what the job in a slot waits for.
type step uint8

const (
	idle   step = iota
	put         // the server's word that it has the job
	take        // a job, not necessarily the one that was put
	finish      // the server's word that it has forgotten the job
)

func (s step) String() string { return [...]string{"idle", "put", "take", "finish"}[s] }

// A dialect translates the steps of a job for one connection. Jobs under way
// have slots, 0 and up; a slot has at most one request without a reply. What
// identifies the job that a slot took (an id, a body, a subject) is kept by the
// dialect until the slot takes another.
//
// One goroutine owns a dialect. None of the methods keeps its argument, and none
// allocates once its buffers have grown.
type dialect interface {
	appendPut(dst []byte, slot int, body []byte) []byte
	appendTake(dst []byte, slot int) []byte
	appendFinish(dst []byte, slot int) []byte

	// next parses the first message of in: how many bytes it takes, 0 if more are
	// needed, and the slot that it answers, or nobody. An error means that the two
	// sides have lost each other.
	next(in []byte) (n, slot int, err error)

	// answer reports whether the message that next returned last is the reply that
	// the step calls for. For take it returns the body, which is a part of in.
	answer(slot int, s step) (body []byte, ok bool)
}

// nobody is the slot of a message that answers no request.
const nobody = -1

// A fifo is for protocols that answer in the order of the requests: it remembers
// whose turn it is. It is a ring with room for one request of each slot.
type fifo struct {
	ring       []int
	head, size int
}

func newFIFO(slots int) fifo { return fifo{ring: make([]int, slots)} }

func (f *fifo) push(slot int) {
	f.ring[(f.head+f.size)%len(f.ring)] = slot
	f.size++
}

// pop returns nobody if no request is without a reply.
func (f *fifo) pop() int {
	if f.size == 0 {
		return nobody
	}
	slot := f.ring[f.head]
	f.head = (f.head + 1) % len(f.ring)
	f.size--
	return slot
}
