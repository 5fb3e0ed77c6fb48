package conversation

import (
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

func (c *Conversation) statsTube(e *engine.Engine, now int64, name []byte) {
	st, o := e.TubeStats(now, name)
	if c.failed(o) {
		return
	}
	c.out.bytes = wire.AppendTubeStats(c.out.bytes, &wire.TubeStats{
		Compat:    c.shared.Compat,
		Name:      string(name),
		Urgent:    st.Urgent,
		Ready:     st.Ready,
		Reserved:  st.Reserved,
		Delayed:   st.Delayed,
		Buried:    st.Buried,
		TotalJobs: st.TotalJobs,
		Using:     st.Using,
		Watching:  st.Watching,
		Waiting:   st.Waiting,
		Deletes:   st.Deletes,
		Pauses:    st.Pauses,
		Pause:     st.Pause,
		PauseLeft: st.PauseLeft,
	})
}

func (c *Conversation) statsJob(e *engine.Engine, now int64, id uint64) {
	st, o := e.JobStats(now, id)
	if c.failed(o) {
		return
	}
	c.shared.job = jobStats(&st)
	c.out.bytes = wire.AppendJobStats(c.out.bytes, &c.shared.job, c.shared.Compat)
}

func jobStats(st *engine.JobStats) wire.JobStats {
	return wire.JobStats{
		Tube:     st.Tube,
		State:    st.State.String(),
		ID:       st.ID,
		Pri:      uint64(st.Pri),
		Age:      uint64(st.Age),
		Delay:    uint64(st.Delay),
		TTR:      uint64(st.TTR),
		TimeLeft: uint64(st.TimeLeft),
		Size:     uint64(st.Size),
		File:     uint64(st.Segment),
		Reserves: uint64(st.Reserves),
		Timeouts: uint64(st.Timeouts),
		Releases: uint64(st.Releases),
		Buries:   uint64(st.Buries),
		Kicks:    uint64(st.Kicks),
	}
}
