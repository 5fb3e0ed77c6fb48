package engine

// A queue is the jobs of a tube in one state, in the order of their keys. It has two
// parts, which only this file, walk.go and search.go know: runs for the jobs that come
// in order, and a heap for all others. To append to a run, or to take its first job,
// touches a few cache lines however many jobs there are, and a place in a run takes 4
// bytes. The heap touches a record at each level, and an entry takes 16.
//
// Jobs that come in order are found by their streams: ready jobs of one priority are a
// stream, delayed jobs of one delay, and all buried jobs.
//
// I19. n counts the jobs of both parts.
type queue struct {
	n    int
	heap jobHeap
	runs *runs // nil until the heap has minHeap jobs; nil again when the queue is empty
}

// minHeap is the number of jobs in the heap from which a queue uses runs, so that short
// queues need no memory for runs.
const minHeap = 64

// streamOf returns the stream of a job in the queue of its state.
func streamOf(j *job) uint32 {
	switch j.state() {
	case Ready:
		return j.pri
	case Delayed:
		return j.delay()
	}
	return 0
}

// first returns the entry of the first job; ok is false if there is none.
func (q *queue) first() (x entry, ok bool) {
	if q.runs != nil && len(q.runs.order) > 0 {
		x, ok = q.runs.all[q.runs.order[0]].first, true
	}
	if q.heap.n > 0 {
		if y := q.heap.pages[0][0]; !ok || y.before(x) {
			return y, true
		}
	}
	return x, ok
}

// top returns the first job, or none.
func (q *queue) top() slot {
	if q.runs == nil {
		return q.heap.top()
	}
	if x, ok := q.first(); ok {
		return x.slot
	}
	return none
}

// due returns when the first job of a queue ordered by due comes due, or Never.
func (q *queue) due() int64 {
	if x, ok := q.first(); ok {
		return x.dueOf()
	}
	return Never
}

// push adds a job.
func (q *queue) push(jobs *jobSlab, i slot, j *job) {
	q.n++
	x := jobs.entryOf(i, j)
	long := q.heap.n >= jobs.minHeap
	if q.runs == nil && long {
		q.runs = jobs.newRuns()
	}
	if q.runs != nil && q.runs.push(jobs, x, j, long) {
		return
	}
	j.setRun(inHeap)
	q.heap.push(jobs, x)
}

// remove removes a job. It returns how many units of work that was beyond the usual.
func (q *queue) remove(jobs *jobSlab, j *job) (work int) {
	if j.run() == inHeap {
		work = q.heap.removalWork()
		q.heap.remove(jobs, int(j.pos))
	} else {
		work = q.runs.remove(jobs, j)
	}
	if q.n--; q.n == 0 && q.runs != nil {
		jobs.freeRuns(q.runs)
		q.runs = nil
	}
	return work
}
