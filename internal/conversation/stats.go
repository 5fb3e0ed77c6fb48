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
	c.out.bytes = wire.AppendJobStats(c.out.bytes, &wire.JobStats{
		Compat:   c.shared.Compat,
		ID:       st.ID,
		Tube:     st.Tube,
		State:    st.State.String(),
		Pri:      st.Pri,
		Age:      st.Age,
		Delay:    st.Delay,
		TTR:      st.TTR,
		TimeLeft: st.TimeLeft,
		File:     uint64(st.Segment),
		Reserves: st.Reserves,
		Timeouts: st.Timeouts,
		Releases: st.Releases,
		Buries:   st.Buries,
		Kicks:    st.Kicks,
	})
}
