package journal

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// BenchmarkAppend is a put and a delete in turns of 64, without syncs.
func BenchmarkAppend(b *testing.B) {
	j := New(Options{Sync: -1})
	e := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(vfs.OS, b.TempDir(), e); err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	s, body := e.Open(nil), make([]byte, 64)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		id, o := e.Put(0, s, engine.Spec{TTR: 60}, body)
		if o != engine.OK {
			b.Fatal("put: outcome", o)
		}
		e.Delete(s, id)
		if n%64 == 0 {
			if err := j.Append(e.TakeChanges()); err != nil {
				b.Fatal(err)
			}
			if err := j.commit(); err != nil {
				b.Fatal(err)
			}
			j.Housekeep(int64(n))
		}
	}
}

// BenchmarkReplay opens a journal of a million jobs with bodies of 64 bytes.
func BenchmarkReplay(b *testing.B) {
	const jobs = 1e6
	dir := b.TempDir()
	open := func() (*Journal, *engine.Engine) {
		j := New(Options{Sync: -1})
		e := engine.New(engine.Options{Logged: true, Admit: j.Admit})
		if _, err := j.Open(vfs.OS, dir, e); err != nil {
			b.Fatal(err)
		}
		return j, e
	}
	j, e := open()
	s, body := e.Open(nil), make([]byte, 64)
	for n := range int(jobs) {
		e.Put(0, s, engine.Spec{TTR: 60}, body)
		if n%1000 == 999 {
			if err := j.Append(e.TakeChanges()); err != nil {
				b.Fatal(err)
			}
			if err := j.commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		j, e := open()
		took += time.Since(start)
		if n := e.Stats().Ready; n != jobs {
			b.Fatal(n, "jobs")
		}
		b.StopTimer()
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(jobs*float64(b.N)/took.Seconds(), "jobs/s")
}
