package main

import (
	"strings"
	"testing"
	"time"
)

// TestTable holds the table to what it looked like when somebody read it.
func TestTable(t *testing.T) {
	of := func(jobs float64, us time.Duration) result {
		us *= time.Microsecond
		return result{Jobs: jobs, P50: us, P99: 20 * us, ServerCPU: us / 10, ClientCPU: us / 4, PeakRSS: 3 << 20}
	}
	blocks := []block{
		{"1 connection, 1 in flight", []row{
			{name: "beanstalkd", runs: []result{of(1000, 30), of(3000, 10), of(2000, 20)}},
			{name: "other", runs: []result{of(1500, 600), of(1500000, 10), of(4000, 20)}},
			{name: "absent", leftOut: "it is not installed"},
		}},
		{"50 connections, 1 in flight", []row{
			{name: "beanstalkd", runs: []result{of(1000, 30)}},
			{name: "other", runs: []result{{Jobs: 500}}, leftOut: "round 2: it died"},
			{name: "absent", leftOut: "it is not installed"},
		}},
	}
	want := `| load | server | jobs/s | to beanstalkd | p50 of a job | p99 | CPU per job | to beanstalkd | CPU of the client | peak RSS |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
| 1 connection, 1 in flight | beanstalkd | 2,000 | 1 | 20.0 us | 400 us | 2.0 us | 1 | 5.0 us | 3.0 MiB |
|  | other | 4,000 | 2.00 (1.50..500.0) | 20.0 us | 400 us | 2.0 us | 1.00 (1.00..20.0) | 5.0 us | 3.0 MiB |
| 50 connections, 1 in flight | beanstalkd | 1,000 | 1 | 30.0 us | 600 us | 3.0 us | 1 | 7.5 us | 3.0 MiB |
|  | other | 500 | 0.50 (0.50..0.50) | - | - | - | - | - | - |

absent was left out: it is not installed.

other was left out: round 2: it died.
`
	var sb strings.Builder
	writeTable(&sb, blocks)
	if got := sb.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 3}, 3}, {[]float64{8, 1, 4, 2}, 3}} {
		if got := median(test.all); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.all, got, test.want)
		}
	}
}

func TestMicros(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "-", 1234 * time.Nanosecond: "1.2 us", 123456 * time.Nanosecond: "123 us", 12345 * time.Microsecond: "12.3 ms",
	} {
		if got := micros(d); got != want {
			t.Errorf("micros(%d) = %s, want %s", d, got, want)
		}
	}
}
