package engine

import "github.com/beanpole-mq/beanpole/internal/engine/histogram"

// Times contains the durations of jobs since the engine was created, in ns.
type Times struct {
	Queue histogram.Histogram // time from ready to reserved
	Work  histogram.Histogram // time from reserved to delete, release or bury
}

// A Total is a number of durations and their sum, in ns.
type Total struct {
	N   uint64
	Sum float64
}

// add adds a non-negative duration.
func (t *Total) add(d int64) {
	t.N++
	t.Sum += float64(d)
}

// Times returns the durations of jobs. The result belongs to the engine; read or copy it
// within a turn.
func (e *Engine) Times() *Times { return &e.times }

// MeasureTube returns the durations of a tube's jobs since the first call of MeasureTube
// for the tube. It returns nil if the tube does not exist. If on is false, it ends the
// measurement and returns nil. A measured tube takes an additional KiB of memory, which
// no limit counts.
func (e *Engine) MeasureTube(name []byte, on bool) *Times {
	t := e.byName[string(name)]
	if t == nil {
		return nil
	}
	if !on {
		t.times = nil
	} else if t.times == nil {
		t.times = new(Times)
	}
	return t.times
}

// endQueue records that a job, which was ready since the given time, is reserved.
func (e *Engine) endQueue(now int64, t *tube, since int64) {
	d := max(now-since, 0)
	e.times.Queue.Record(d)
	if t.times != nil {
		t.times.Queue.Record(d)
	}
	t.counts.Queued.add(d)
}

// endWork records the end of work on a reserved job. It uses the time passed to Tick,
// which can be a few ns before the time of the reserve.
func (e *Engine) endWork(t *tube, j *job) {
	d := max(e.now-e.jobs.held(j).when, 0)
	e.times.Work.Record(d)
	if t.times != nil {
		t.times.Work.Record(d)
	}
	t.counts.Worked.add(d)
}
