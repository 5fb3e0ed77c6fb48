package load

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Println("the load generator runs on Linux only")
		return
	}
	goleak.VerifyTestMain(m)
}
