package queue

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// If there are more than agesAtOnce tubes, top loads ages for the tubes on the screen
// first, then for the tubes with the most ready jobs.
func TestTopAges(t *testing.T) {
	ctx := t.Context()
	c, err := client.Dial(ctx, "memory", &client.Options{Dial: beanpoletest.NewMemory(t).Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs := []client.NewJob{{Tube: "few"}}
	for i := range agesAtOnce {
		tube := fmt.Sprintf("many%03d", i)
		jobs = append(jobs, client.NewJob{Tube: tube}, client.NewJob{Tube: tube})
	}
	if _, err := c.PutMany(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	top := &topServer{Session: &cliutil.Session{Conn: c}, ctx: ctx}
	for _, onScreen := range []string{"", "few"} {
		snap, err := top.Snapshot([]string{onScreen})
		if err != nil {
			t.Fatal(err)
		}
		known := make(map[string]bool)
		for _, tube := range snap.Tubes {
			if tube.AgeKnown {
				known[tube.Name] = true
			}
		}
		if len(known) != agesAtOnce || known["few"] != (onScreen == "few") {
			t.Errorf("with %q on the screen: %d ages, few: %v", onScreen, len(known), known["few"])
		}
	}
}
