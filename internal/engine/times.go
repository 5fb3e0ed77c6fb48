package engine

import "github.com/beanpole-mq/beanpole/internal/engine/histogram"

// Times are how long jobs have taken since the engine began, in ns.
type Times struct {
	Queue histogram.Histogram // from becoming ready to being reserved
	Work  histogram.Histogram // from being reserved to the delete, release or bury
}

// A Total is a number of durations and their sum, in ns.
type Total struct {
	N   uint64
	Sum float64
}

// add adds a duration that is not negative.
func (t *Total) add(d int64) {
	t.N++
	t.Sum += float64(d)
}

// Times returns how long jobs have taken. It is the engine's own, to read or to copy
// within a turn.
func (e *Engine) Times() *Times { return &e.times }

// endQueue notes that a job of a tube which was ready since a time is reserved.
func (e *Engine) endQueue(now int64, t *tube, since int64) {
	d := max(now-since, 0)
	e.times.Queue.Record(d)
	t.queued.add(d)
}

// endWork notes that the work on a reserved job of a tube is over. The time is that of
// the turn, as Tick was told; it may be a few ns before that of the reserve.
func (e *Engine) endWork(t *tube, j *job) {
	d := max(e.now-e.jobs.held(j).when, 0)
	e.times.Work.Record(d)
	t.worked.add(d)
}
