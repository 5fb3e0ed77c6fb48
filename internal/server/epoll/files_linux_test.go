package epoll

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// After ReserveFiles the table has the requested size, and no more files are open. Too
// large a number does no harm.
func TestReserveFiles(t *testing.T) {
	for _, n := range []int{1, 1000, 1 << 30} {
		before := openFiles(t)
		ReserveFiles(n)
		if after := openFiles(t); after != before {
			t.Errorf("open files: %d before, %d after", before, after)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, size, _ := strings.Cut(string(status), "FDSize:")
	var places int
	if _, err := fmt.Sscan(size, &places); err != nil || places < 1000 {
		t.Errorf("the table has %d entries (%v)", places, err)
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
