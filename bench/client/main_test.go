package main

import (
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// Each contender does what is asked of it, and leaves nothing behind.
func TestReport(t *testing.T) {
	srv := beanpoletest.NewServer(t)
	var out strings.Builder
	if err := report(&out, "here", srv.Addr, 2, 30); err != nil {
		t.Fatal(err)
	}
	for _, c := range contenders {
		if !strings.Contains(out.String(), "| "+c.name+" | ") {
			t.Errorf("no line of %s in\n%s", c.name, out.String())
		}
	}
	if err := empty(srv.Addr); err != nil {
		t.Error(err)
	}
}

func TestMedian(t *testing.T) {
	got := median([]result{{3, 30, 1, 5}, {1, 10, 2, 5}, {2, 20, 3, 7}, {9, 90, 4, 7}})
	if got != (result{2.5, 25, 2.5, 6}) {
		t.Error(got)
	}
	if got := ratios([]result{{rate: 2}, {rate: 9}, {rate: 1}}, []result{{rate: 1}, {rate: 3}, {rate: 1}}); got != "2.00 (1.00..3.00)" {
		t.Error(got)
	}
}
