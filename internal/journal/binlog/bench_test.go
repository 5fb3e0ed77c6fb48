package binlog

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

var benchJobs = flag.Uint64("jobs", 100_000, "how many jobs the benchmarks have")

// benchSnapshot yields jobs with a body of 64 bytes.
func benchSnapshot(yield func(engine.Change) bool) {
	body := bytes.Repeat([]byte("x"), 64)
	for id := range *benchJobs {
		if !yield(engine.Change{Kind: engine.JobPut, State: engine.Ready, ID: id + 1, Pri: uint32(id), TTR: 60, Tube: "default", Body: body}) {
			return
		}
	}
}

// BenchmarkRead reads real files, which are in the page cache: the bare reading,
// and into an engine.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	sum, err := Write(vfs.OS, dir, Options{}, benchSnapshot)
	if err != nil {
		b.Fatal(err)
	}
	for _, into := range []string{"nothing", "engine"} {
		b.Run(fmt.Sprintf("body=64/jobs=%d/into=%s", *benchJobs, into), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(sum.Bytes)
			for b.Loop() {
				eng := engine.New(engine.Options{})
				_, err := Read(vfs.OS, dir, Options{}, func(c engine.Change) error {
					if into == "engine" {
						eng.Restore(c)
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(*benchJobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	b.Run(fmt.Sprintf("body=64/jobs=%d", *benchJobs), func(b *testing.B) {
		for b.Loop() {
			sum, err := Write(vfs.OS, b.TempDir(), Options{}, benchSnapshot)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(sum.Bytes)
		}
		b.ReportMetric(float64(*benchJobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	})
}
