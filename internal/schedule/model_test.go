package schedule

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A world is an engine with schedules, its log, a wall clock and a naive model.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	e     *engine.Engine
	log   []engine.Change
	now   int64 // time on the engine's clock, in ns
	wall  int64 // in seconds
	defs  map[string]map[string]string
	done  map[string]int64 // by schedule, the time up to which the model has run it
	seen  map[string]int64 // by schedule, the time up to which the engine has searched
	due   map[string][]int64
	last  map[string]uint64 // the last job
	fired map[string]bool   // name and time of each job in the log
}

// start starts an engine from the log.
func (w *world) start() {
	w.now, w.e = 0, engine.New(engine.Options{Logged: true, CompileSchedule: CompileText})
	for _, c := range w.log {
		w.e.Restore(c)
	}
}

// dueOf returns the runs of a schedule that the model has not yet executed.
func (w *world) dueOf(name string) []int64 {
	from := max(w.seen[name], w.done[name])
	if w.wall > from {
		w.due[name], w.seen[name] = append(w.due[name], w.runs(name, from, w.wall)...), w.wall
	}
	w.due[name] = slices.DeleteFunc(w.due[name], func(at int64) bool { return at <= w.done[name] })
	return slices.DeleteFunc(slices.Clone(w.due[name]), func(at int64) bool { return at > w.wall })
}

// runs returns the runs of a schedule after from, up to and including to.
func (w *world) runs(name string, from, to int64) (runs []int64) {
	def := w.defs[name]
	if def["cron"] != "" {
		zone, _ := ZoneOf(def["timezone"])
		c, _ := parseCron(def["cron"], zone)
		return naiveRuns(c, from, to)
	}
	every, _ := time.ParseDuration(def["every"])
	for at := w.done[name] + int64(every.Seconds()); at <= to; at += int64(every.Seconds()) {
		if at > from {
			runs = append(runs, at)
		}
	}
	return runs
}

// expect updates the model and returns the jobs that it puts now. Skipped runs, and runs
// while the server drains, put no job.
func (w *world) expect() (jobs []string) {
	for _, name := range slices.Sorted(maps.Keys(w.defs)) {
		def := w.defs[name]
		due := w.dueOf(name)
		if len(due) == 0 || w.e.IsDraining() && !(def["overlap"] == "skip" && w.waits(name)) && !w.allMissed(def, due) {
			continue
		}
		w.done[name] = due[len(due)-1]
		keep := due[len(due)-1:]
		switch {
		case def["missed"] == "all":
			keep = due[max(0, len(due)-100):]
			keep = slices.DeleteFunc(keep, func(at int64) bool { return w.wall-at > 24*60*60 })
		case w.allMissed(def, due):
			keep = nil
		}
		for _, at := range keep {
			if def["overlap"] == "skip" && (w.waits(name) || len(jobs) > 0 && strings.HasPrefix(jobs[len(jobs)-1], name+" ")) {
				continue
			}
			jobs = append(jobs, fmt.Sprint(name, " ", at))
		}
	}
	return jobs
}

func (w *world) allMissed(def map[string]string, due []int64) bool {
	late := w.wall - due[len(due)-1]
	return def["missed"] == "skip" && late > 60 || def["missed"] == "all" && late > 24*60*60
}

// waits reports whether the last job of a schedule still exists and is not buried.
func (w *world) waits(name string) bool {
	c, there := w.e.Snapshot(w.last[name])
	return there && c.State != engine.Buried
}

// turn executes all due runs, in several turns if necessary, and compares the jobs.
func (w *world) turn() {
	w.t.Helper()
	want, from := w.expect(), len(w.log)
	var got []string
	for n := 0; ; n++ {
		w.now++
		w.e.Tick(w.now)
		if !w.e.SchedulesDue(w.now) && n > 0 {
			break
		}
		w.e.RunSchedules(w.now, w.wall*1e9)
		for _, c := range w.e.TakeChanges() {
			c.Body = bytes.Clone(c.Body)
			w.log = append(w.log, c)
			if c.Kind != engine.JobPut {
				continue
			}
			at, err := time.Parse(time.RFC3339, string(c.Body))
			if err != nil {
				w.t.Fatal(err)
			}
			one := fmt.Sprint(c.From, " ", at.Unix())
			if w.fired[one] {
				w.t.Fatalf("%s is put twice", one)
			}
			w.fired[one], w.last[c.From] = true, c.ID
			got = append(got, one)
		}
		if n > 10_000 {
			w.t.Fatal("the schedules are still due")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Fatalf("at %d put %v, want %v; definitions %v", w.wall, got, want, w.defs)
	}
	if w.rng.IntN(50) == 0 && from > 0 && len(w.log) > from { // the definitions are already durable
		w.crash(from + w.rng.IntN(len(w.log)-from))
	}
}

// crash restarts the engine with a part of the log, and sets the model to its contents.
func (w *world) crash(length int) {
	for _, c := range w.log[length:] {
		if c.Kind == engine.JobPut {
			at, _ := time.Parse(time.RFC3339, string(c.Body))
			delete(w.fired, fmt.Sprint(c.From, " ", at.Unix()))
		}
	}
	w.log = w.log[:length]
	w.start()
	clear(w.seen)
	clear(w.due)
	for _, st := range w.e.Schedules() {
		if w.last[st.Name] = st.Mark.Job; st.Mark.At > 0 {
			w.done[st.Name] = st.Mark.At
		}
	}
}

// TestModel runs schedules for years, with clock jumps, restarts, crashes and workers. It
// compares their jobs with a model that checks each minute.
func TestModel(t *testing.T) {
	jobs := 0
	ran := seeds.Each(t, 3, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := &world{t: t, rng: rng, wall: time.Date(2000+rng.IntN(40), 1, 1, 0, 0, 0, 0, time.UTC).Unix() + rng.Int64N(365*86400),
			defs: make(map[string]map[string]string), done: make(map[string]int64), seen: make(map[string]int64), due: make(map[string][]int64), last: make(map[string]uint64), fired: make(map[string]bool)}
		w.start()
		for len(w.defs) < 3 {
			def := map[string]string{"tube": "t", "body": "{time}", "missed": Settings[8].Words[rng.IntN(3)], "overlap": Settings[9].Words[rng.IntN(2)]}
			if len(w.defs) == 0 { // runs many times, whatever the seed
				def["every"], def["missed"], def["overlap"] = (time.Duration(1+rng.IntN(5000)) * time.Minute).String(), "once", "put"
			} else if rng.IntN(3) == 0 {
				def["every"] = (time.Duration(1+rng.IntN(5000)) * time.Minute).String()
			} else {
				def["cron"], def["timezone"] = drawCron(rng), zoneList()[rng.IntN(len(zoneList()))]
			}
			name := fmt.Sprint("s", len(w.defs))
			if CompileText(name, Text(def)) == nil {
				continue
			}
			w.defs[name], w.done[name] = def, w.wall
			if o := w.e.SetSchedule(name, Text(def)); o != engine.OK {
				t.Fatal(o)
			}
		}
		w.turn()
		for end := w.wall + 2*365*86400; w.wall < end; {
			step := 1 + rng.Int64N(int64([]time.Duration{time.Minute, time.Hour, time.Hour, 24 * time.Hour, 20 * 24 * time.Hour}[rng.IntN(5)]/time.Second))
			w.now += step * 1e9
			w.wall += step
			switch rng.IntN(20) {
			case 0:
				w.wall -= rng.Int64N(3 * 3600) // the clock is set back
			case 1:
				w.wall += rng.Int64N(3 * 86400)
			case 2:
				w.crash(len(w.log))
			case 3, 4:
				if w.e.Drain(); rng.IntN(2) == 0 {
					w.e.Undrain()
				}
			default:
				w.e.Undrain()
			}
			for _, id := range w.last {
				if rng.IntN(3) > 0 {
					w.e.DeleteJob(id)
				}
			}
			w.turn()
		}
		if err := w.e.Check(); err != nil {
			t.Error(err)
		}
		jobs += len(w.fired)
	})
	if seeds.Enough(ran, 3) && jobs < 100 {
		t.Errorf("only %d jobs", jobs)
	}
}
