package journal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// A server that starts on a disk that other programs have filled can still delete jobs,
// even if the previous server was killed.
func TestDeleteOnDiskThatOthersFilled(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			b := newBench(t, Options{SegmentSize: 8192})
			var ids []uint64
			for range 2000 {
				b.turn(func() { ids = append(ids, b.put(engine.Spec{}, 10)) })
			}
			disk := b.log.fs.(*memfs.FS)
			if killed {
				disk = disk.Crash(rand.New(rand.NewPCG(1, 1)))
			} else if err := b.log.Close(); err != nil {
				t.Fatal(err)
			}
			disk.SetLimit(1)
			b.reopen(disk)
			for i, id := range ids {
				b.turn(func() {
					if o := b.eng.Delete(b.s, id); o != engine.OK {
						t.Fatalf("delete of job %d of %d: outcome %v", i, len(ids), o)
					}
				})
			}
			disk.SetLimit(0)
			if !killed {
				return
			}
			if err := b.log.Close(); err != nil {
				t.Fatal(err)
			}
			b.reopen(disk)
			if st := b.eng.Stats(); st.Ready != 0 {
				t.Errorf("%d jobs are back", st.Ready)
			}
		})
	}
}

// An orderly stop counts the attempt of a job that is still reserved.
func TestCloseCountsAttempts(t *testing.T) {
	b := newBench(t, Options{SegmentSize: segment})
	var id uint64
	b.turn(func() { id = b.put(engine.Spec{}, 10) })
	b.turn(func() { b.eng.ReserveJob(b.now, b.s, id) })
	if err := b.log.Close(); err != nil {
		t.Fatal(err)
	}
	b.reopen(b.log.fs.(*memfs.FS))
	if st, _ := b.eng.JobStats(0, id); st.Reserves != 1 {
		t.Errorf("the job has %d reserves, want 1", st.Reserves)
	}
}
