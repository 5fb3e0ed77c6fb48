package load

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"
)

// A history has one line for a comparison, with as many fields as its header
// names; what was not measured is empty.
func TestHistory(t *testing.T) {
	c := Comparison{
		Name: "a load, with a comma",
		A:    Side{Name: "beanstalkd", Throughput: 1000.4},
		B:    Side{Name: "beanpole", Throughput: 2000.6, PeakRSS: 5},
		ToA:  Ratios{Throughput: Ratio{Median: 1.99984}, P99: Ratio{Median: 0.0123456}},
	}
	when := time.Date(2026, 11, 21, 23, 0, 0, 0, time.FixedZone("", -3600))
	m := Machine{CPUs: 2, Model: "Model", Kernel: "Linux 6", Arch: "amd64", Go: "go1.26"}
	var with, without strings.Builder
	if err := WriteHistory(&without, RecordOf(&c, m, "1.0", when)); err != nil {
		t.Fatal(err)
	}
	want := `2026-11-22,1.0,"2 cores of Model, Linux 6 amd64, go1.26","a load, with a comma",beanstalkd,1000,2001,2,,,,0.0123,5` + "\n"
	if got := without.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.ToResponder = &Ratios{Throughput: Ratio{Median: 0.95}}
	if err := WriteHistory(&with, RecordOf(&c, m, "1.0", when), RecordOf(&c, m, "1.1", when)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(with.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], ",1.1,") || !strings.Contains(lines[0], ",2,0.95,,") {
		t.Errorf("%q", lines)
	}
	fields, err := csv.NewReader(strings.NewReader(want)).Read()
	if err != nil || len(fields) != len(HistoryHeader) {
		t.Errorf("%d fields, the header has %d (%v)", len(fields), len(HistoryHeader), err)
	}
}
