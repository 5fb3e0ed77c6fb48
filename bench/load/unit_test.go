package load

import "testing"

func TestFormatTime(t *testing.T) {
	for ns, want := range map[float64]string{209: "0.21 us", 999_600: "1000 us", 12_345_678: "12.3 ms", 1.5e9: "1.50 s"} {
		if got := FormatTime(ns); got != want {
			t.Errorf("%v ns is printed %q, want %q", ns, got, want)
		}
	}
}
