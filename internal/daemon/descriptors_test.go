package daemon

import "testing"

// The number of connections is the configured number, or the number that the file limit
// permits.
func TestFitting(t *testing.T) {
	for files, want := range map[int]int{-5: 1, 1: 1, 99: 99, 100: 100, 19888: 100} {
		if n := fitting(100, files); n != want {
			t.Errorf("%d connections with %d files, want %d", n, files, want)
		}
	}
}
