package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// counted is a contender that takes twice as many puts in each round as before.
func counted(name string, rate float64) contender {
	return contender{name, nil, func(context.Context, int, int, time.Duration) (load.Result, error) {
		rate *= 2
		return load.Result{Throughput: rate, Commands: 1, Latency: load.Latency{P50: time.Millisecond, P99: 2 * time.Millisecond}}, nil
	}}
}

// The ratios are those of the same round, in the table and in what is saved.
func TestTable(t *testing.T) {
	opt := options{rounds: 3, duration: time.Second, connections: []int{8}, save: filepath.Join(t.TempDir(), "cluster.json")}
	var out strings.Builder
	if err := opt.compare(t.Context(), &out, []contender{counted("one", 100), counted("another", 50)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 8 | one | 400 | 1.00 (1.00..1.00) | 1.00 ms | 2.00 ms | 0.00 us |", "| 8 | another | 200 | 0.50 (0.50..0.50) | 1.00 ms | 2.00 ms | 0.00 us |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	saved, err := os.ReadFile(opt.save)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"contender":"another","clients":8,"puts_per_second":{"median":200,"min":100,"max":400},"ratio":{"median":0.5,"min":0.5,"max":0.5},"p50_ns":1000000,"p99_ns":2000000,"cpu_ns":0}`; !strings.Contains(string(saved), want) {
		t.Errorf("what is saved lacks %s:\n%s", want, saved)
	}
}
