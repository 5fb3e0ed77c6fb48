package queue

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// With more tubes than top asks for the next job of, those on the screen come first, then those
// with the most ready jobs. A server of which top knows that it has no list-jobs is asked otherwise.
func TestTopAges(t *testing.T) {
	for _, plain := range []bool{false, true} {
		ctx := t.Context()
		srv := beanpoletest.NewMemory(t)
		c, err := client.Dial(ctx, "memory", &client.Options{Dial: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		jobs := []client.NewJob{{Tube: "few"}}
		for i := range agesAtOnce {
			tube := fmt.Sprintf("many%03d", i)
			jobs = append(jobs, client.NewJob{Tube: tube}, client.NewJob{Tube: tube})
		}
		if _, err := c.PutMany(ctx, jobs); err != nil {
			t.Fatal(err)
		}
		top := &topServer{Session: &cliutil.Session{Conn: c}, ctx: ctx, plain: plain}
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
				t.Errorf("plain %v, with %q on the screen: %d ages are known, few: %v", plain, onScreen, len(known), known["few"])
			}
		}
	}
}
