package engine

// A queue contains the jobs of a tube in one state, ordered by key. It consists of runs,
// for jobs that arrive in order, and a heap for all others. Only this file, walk.go and
// search.go depend on this. Appending to a run or removing its first job touches a few
// cache lines, whatever the number of jobs, and an entry takes 4 bytes. The heap touches
// one record per level, and an entry takes 16 bytes.
//
// Jobs that arrive in order form streams: ready jobs with the same priority, delayed jobs
// with the same delay, and all buried jobs.
//
// I19. n counts the jobs of both parts.
type queue struct {
	n    int
	heap jobHeap
	runs *runs // nil until the heap has minHeap jobs, and after the queue was empty
}

// minHeap is the number of jobs in the heap from which a queue uses runs. Short queues
// need no memory for runs.
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

// top returns the first job, or none if the queue is empty.
func (q *queue) top() slot {
	if q.runs == nil {
		return q.heap.top()
	}
	if x, ok := q.first(); ok {
		return x.slot
	}
	return none
}

// due returns the time at which the first job of a queue ordered by due time is due, or
// Never.
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

// remove removes a job and returns the additional units of work.
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
