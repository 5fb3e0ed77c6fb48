package admin

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/google/go-cmp/cmp"
)

// The table in doc/metrics.md contains exactly the exported metrics, in the same order,
// with their kinds, labels and help texts.
func TestDocumented(t *testing.T) {
	opt := everything()
	opt.Tubes = DefaultTubes
	registry := prometheus.NewRegistry()
	asked := newRequests()
	get(t, asked.count(http.NotFoundHandler()), "/", "")
	registry.MustRegister(&collector{&watcher{newQueue(t), &opt, make(chan struct{}, maxLooks)}, everybody()}, asked.total, asked.seconds)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range families {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		slices.Sort(labels)
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", f.GetName(), strings.TrimSpace(strings.ToLower(f.GetType().String())+" "+strings.Join(labels, ", ")), f.GetHelp()))
	}
	text, err := os.ReadFile("../../doc/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `beanpole_") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of metrics (- program, + document):\n%s\nit should be\n%s", diff, strings.Join(want, "\n"))
	}
}

// All tubes have metrics, even if there are more tubes than one turn reads.
func TestTubesOfManyTurns(t *testing.T) {
	const tubes = 2*tubesPerTurn + 1
	b := broker.New(engine.New(engine.Options{}), broker.Options{})
	t.Cleanup(func() { b.Close() })
	b.Call(func(e *engine.Engine, _ int64) {
		s := e.Open(nil)
		for i := range tubes - 1 { // the last one is the tube default
			e.Watch(s, fmt.Appendf(nil, "tube-%d", i))
		}
	})
	code, body := get(t, New(b, Options{Tubes: tubes}), "/metrics", "")
	if code != http.StatusOK {
		t.Fatal(code, body)
	}
	if n := strings.Count(body, "\nbeanpole_tube_oldest_ready_seconds{"); n != tubes {
		t.Errorf("%d tubes have metrics, want %d", n, tubes)
	}
}
