package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// BenchmarkSameMinute runs 1,000 schedules that are due in the same minute. It reports
// the longest turn, for which other clients wait, and the number of turns.
func BenchmarkSameMinute(b *testing.B) {
	var worst, total time.Duration
	turns := 0
	for b.Loop() {
		configured := make(map[string]string)
		for n := range engine.MaxSchedules {
			configured[fmt.Sprint("schedule-", n)] = Text(map[string]string{"cron": "30 3 * * *", "timezone": "Europe/Berlin", "tube": fmt.Sprint("tube-", n%100), "body": "{time} {name}"})
		}
		e := engine.New(engine.Options{Logged: true, Schedules: configured, CompileSchedule: CompileText})
		wall := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC).UnixNano()
		now := int64(0)
		for day := range 3 {
			for range 1000 {
				began := time.Now()
				e.Tick(now)
				if !e.SchedulesDue(now) {
					break
				}
				e.RunSchedules(now, wall+now)
				changes := e.TakeChanges()
				took := time.Since(began)
				e.RecycleChanges(changes)
				if now++; day > 0 { // the first run compiles them
					worst, total, turns = max(worst, took), total+took, turns+1
				}
			}
			now += 24 * int64(time.Hour)
		}
		if n := e.ScheduleCounts().Runs; n != 2*engine.MaxSchedules {
			b.Fatalf("%d runs", n)
		}
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs/turn")
	b.ReportMetric(float64(turns)/float64(b.N)/2, "turns")
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N)/2/engine.MaxSchedules, "ns/run")
}
