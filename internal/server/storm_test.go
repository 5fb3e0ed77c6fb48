package server

import (
	"fmt"
	"sync"
	"testing"
)

// Many workers wait for each of many jobs. Each job goes to one worker, and turns of
// producers and workers interleave in all ways.
func TestHandOverStorm(t *testing.T) {
	for _, loops := range []int{1, 3} {
		const workers, producers, each = 20, 5, 200
		r := start(t, Options{Loops: loops})
		l := listenOn(t, "tcp")
		r.serve(l)
		var got sync.Map
		var done sync.WaitGroup
		for range workers {
			c := dialTo(t, l)
			done.Go(func() {
				for range producers * each / workers {
					c.send("reserve\n")
					var id uint64
					fmt.Sscanf(c.line("RESERVED"), "RESERVED %d", &id)
					c.want("x\n")
					if _, twice := got.LoadOrStore(id, true); twice {
						t.Errorf("job %d was served twice", id)
					}
					c.do(fmt.Sprintf("delete %d\n", id), "DELETED\n")
				}
			})
		}
		for range producers {
			c := dialTo(t, l)
			done.Go(func() {
				for range each {
					c.send("put 0 0 60 1\nx\n")
					c.line("INSERTED")
				}
			})
		}
		done.Wait()
		if st := r.stats(); st.Ready+st.Reserved != 0 || st.TotalJobs != producers*each {
			t.Errorf("at the end: %+v", st)
		}
	}
}
