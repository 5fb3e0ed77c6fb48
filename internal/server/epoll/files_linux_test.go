package epoll

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table is as large as asked for afterwards, with no more files in it. Too many files are no harm.
func TestReserveFiles(t *testing.T) {
	for _, n := range []int{1, 1000, 1 << 30} {
		before := openFiles(t)
		ReserveFiles(n)
		if after := openFiles(t); after != before {
			t.Errorf("%d files were open, and are %d", before, after)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, size, _ := strings.Cut(string(status), "FDSize:")
	var places int
	if _, err := fmt.Sscan(size, &places); err != nil || places < 1000 {
		t.Errorf("the table has %d places (%v)", places, err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
