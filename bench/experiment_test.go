package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A server that is too slow is left out of the rounds that follow; the others are
// not.
func TestServerThatIsTooSlow(t *testing.T) {
	runs := 0
	e := Experiment{
		Name: "patience",
		trial: func(_ context.Context, t *trial) error {
			runs++
			if t.isA {
				return fmt.Errorf("not today: %w", load.ErrTooSlow)
			}
			t.set("figure", load.Times, 1)
			return nil
		},
	}
	r, err := e.run(t.Context(), &Options{A: Server{Name: "slow"}, B: Server{Name: "fast"}, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := "not today: " + load.ErrTooSlow.Error(); r.LeftOut[sideA] != want || r.LeftOut[sideB] != "" {
		t.Errorf("left out %q, want %q", r.LeftOut, want)
	}
	f := &r.Figures[0]
	if runs != 4 || f.Servers[sideA].Spread != nil || len(f.Servers[sideB].Values) != 3 {
		t.Errorf("%d trials, figure %+v", runs, f)
	}
}
