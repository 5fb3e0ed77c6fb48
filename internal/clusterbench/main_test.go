package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

func TestShort(t *testing.T) {
	for ns, want := range map[float64]string{0: "0s", 999: "999ns", 1234: "1.23µs", 15_678: "15.7µs", 1_500_000_000: "1.5s"} {
		if got := short(ns).String(); got != want {
			t.Errorf("%v ns: %s, want %s", ns, got, want)
		}
	}
}

// A counted contender takes twice as many puts in each round as before.
type counted struct {
	label string
	rate  float64
}

func (c *counted) name() string { return c.label }
func (c *counted) pids() []int  { return nil }

func (c *counted) put(context.Context, int, int, time.Duration) (load.Result, error) {
	c.rate *= 2
	return load.Result{Throughput: c.rate, Commands: 1, Latency: load.Latency{P50: time.Millisecond, P99: 2 * time.Millisecond}}, nil
}

// The ratios are those of the same round.
func TestTable(t *testing.T) {
	opt := options{rounds: 3, duration: time.Second, connections: []int{8}}
	var out strings.Builder
	if err := opt.compare(t.Context(), &out, []contender{&counted{"one", 100}, &counted{"another", 50}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 8 | one | 400 | 1.00 (1.00..1.00) | 1ms | 2ms | 0s |", "| 8 | another | 200 | 0.50 (0.50..0.50) | 1ms | 2ms | 0s |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
