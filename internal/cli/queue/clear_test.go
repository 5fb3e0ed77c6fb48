package queue

import (
	"testing"

	"github.com/beanpole-mq/beanpole/client"
)

// All jobs of a state go, also where the last command takes the last of them, and the
// tube with it.
func TestClearState(t *testing.T) {
	ctx := t.Context()
	c := newTarget(t).look
	for _, jobs := range []int{sweepBatch, sweepBatch + 1} {
		news := make([]client.NewJob, jobs)
		for i := range news {
			news[i].Tube = "t"
		}
		if _, err := c.PutMany(ctx, news); err != nil {
			t.Fatal(err)
		}
		if err := c.Use(ctx, "default"); err != nil {
			t.Fatal(err)
		}
		cleared := 0
		err := clearState(ctx, c, "t", client.StateReady, func(n int) { cleared += n }, func() { t.Error("it is slow") })
		if cleared != jobs || err != nil {
			t.Errorf("cleared %d of %d: %v", cleared, jobs, err)
		}
	}
}
