package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A server that is too slow is skipped in later rounds, but the other server is not.
func TestServerThatIsTooSlow(t *testing.T) {
	e := Experiment{
		Name: "Patience/of a kind",
		trial: func(_ context.Context, t *trial) error {
			if t.server.Name == "slow" {
				return fmt.Errorf("not today: %w", load.ErrTooSlow)
			}
			t.set(123456.7, "cmds/s")
			t.set(0, "cpu-ns/cmd")
			return nil
		},
	}
	var out strings.Builder
	if err := e.run(t.Context(), &Options{A: Server{Name: "slow"}, B: Server{Name: "fast"}, Rounds: 2}, &out); err != nil {
		t.Fatal(err)
	}
	const result = "BenchmarkPatience/of_a_kind/server=fast 1\t1.235e+05 cmds/s\n"
	if want := "# Patience/of a kind: slow is left out: not today: " + load.ErrTooSlow.Error() + "\n" + result + result; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
