package daemon

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/server"
)

// There are as many connections as files permit, and not one less.
func TestFitting(t *testing.T) {
	for _, files := range []int{-5, 1, 2, 9, 10, 992, 1152, 1153, 19888} {
		n := fitting(65536, files)
		if n != 1 && n+server.WaitingRoom(n) > files {
			t.Errorf("%d files: %d connections are too many", files, n)
		}
		if files > 1 && n+1+server.WaitingRoom(n+1) <= files {
			t.Errorf("%d files: %d connections, and there is room for more", files, n)
		}
	}
	if n := fitting(100, 19888); n != 100 {
		t.Errorf("%d connections, 100 were asked for", n)
	}
}
