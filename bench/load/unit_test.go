package load

import "testing"

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Bytes, 182.4, "182 bytes"},
		{Bytes, 8 << 10, "8.0 KiB"},
		{Bytes, -2048, "-2.0 KiB"},
		{Bytes, 70_000, "0.1 MiB"},
		{Nanoseconds, 209, "0.21 us"},
		{Nanoseconds, 999_600, "1000 us"},
		{Nanoseconds, 12_345_678, "12.3 ms"},
		{Nanoseconds, 1.5e9, "1.50 s"},
		{PerSecond, 999, "999/s"},
		{PerSecond, 1_000_000, "1,000,000/s"},
		{Times, 0.0123, "0.012 times"},
		{Times, 24.44, "24.4 times"},
	} {
		if got := tt.unit.Format(tt.value); got != tt.want {
			t.Errorf("%v %s is printed %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
}
