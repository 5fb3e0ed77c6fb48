package task

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/audit"
	"github.com/beanpole-mq/beanpole/internal/history"
)

// Tasks of different leaders have different ids. A server that is asked for another
// server's task warns that a repeated request can do the same work again.
func TestIDs(t *testing.T) {
	changes := &audit.Log{Logger: slog.New(slog.DiscardHandler), Store: history.New(history.Options{})}
	var before, after Runner
	before.After, after.After = 1000<<16, 2000<<16
	start := func(r *Runner) uint64 {
		task, err := r.Start(t.Context(), changes.Begin(&access.Caller{Identity: new(access.Identity)}, "startTask", ""), admin.Task{Do: "move"}, 60, func(context.Context, *Task) error { return nil })
		if err != nil || task.Status != "done" {
			t.Fatalf("%+v, %v", task, err)
		}
		return task.ID
	}
	first := start(&before)
	for range Kept {
		start(&before)
	}
	other := start(&after)
	if _, err := after.Find(other); err != nil {
		t.Error(err)
	}
	if _, err := after.Find(first); err == nil || !strings.Contains(err.Error(), "check the jobs before you repeat the request") {
		t.Errorf("the task of another leader: %v", err)
	}
	if _, err := before.Find(first); err == nil || !strings.Contains(err.Error(), "no longer stored") {
		t.Errorf("a task that was forgotten: %v", err)
	}
	before.Close()
	after.Close()
}
