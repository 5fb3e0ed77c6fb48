package cluster

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/schedule"
)

// TestSchedulesOfLeaders checks that each run of a schedule has one job, although leaders
// are killed, lose their disk's cache, or are cut off.
func TestSchedulesOfLeaders(t *testing.T) {
	compile := func(sim *simulation) { sim.opt.Engine.CompileSchedule = schedule.CompileText }
	inSimulationOf(t, 3, compile, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		sim.must(l.Broker().Call(func(e *engine.Engine, _ int64) {
			if o := e.SetSchedule("each-second", schedule.Text(map[string]string{"every": "1s", "missed": "all", "tube": "runs", "body": "{time}"})); o != engine.OK {
				t.Fatal(o)
			}
		}))
		for life := range 6 {
			time.Sleep(3 * time.Second)
			m := sim.nodeOf(sim.leader())
			switch life % 3 {
			case 0, 1:
				m.kill(life%2 == 1)
				sim.leader()
				m.boot()
			case 2:
				sim.part(m)
				time.Sleep(3 * time.Second)
				sim.heal()
			}
		}
		time.Sleep(3 * time.Second)
		runs := make(map[int64]int)
		var mark engine.Mark
		sim.must(sim.leader().Broker().Call(func(e *engine.Engine, now int64) {
			s := e.Open(nil)
			e.Watch(s, []byte("runs"))
			for _, st := range e.Schedules() {
				mark = st.Mark
			}
			for job, o := e.Reserve(now, s, 0); o == engine.OK; job, o = e.Reserve(now, s, 0) {
				at, err := time.Parse(time.RFC3339, string(job.Body))
				if err != nil {
					t.Error(err)
				}
				runs[at.Unix()]++
				e.Delete(s, job.ID)
			}
			e.SetSchedule("each-second", "") // the audit expects no other jobs
		}))
		if len(runs) < 20 || uint64(len(runs)) != mark.Runs || mark.Missed != 0 {
			t.Errorf("%d runs have jobs; the mark is %+v", len(runs), mark)
		}
		for at := range int64(len(runs)) {
			if n := runs[mark.At-at]; n != 1 {
				t.Errorf("the run at %d has %d jobs", mark.At-at, n)
			}
		}
		sim.audit()
	})
}
