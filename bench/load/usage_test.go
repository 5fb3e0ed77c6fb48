package load

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// The measured usage of this process agrees with other values from the kernel.
func TestUsageOf(t *testing.T) {
	counted := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for spent := counted(); counted() < spent+5*clockTick; { // so that the usage is measurable
	}
	before := counted()
	u := UsageOf(os.Getpid())
	if after := counted(); u.CPU < before-2*clockTick || u.CPU > after+2*clockTick {
		t.Errorf("processor time %v, and by getrusage between %v and %v", u.CPU, before, after)
	}
	if u.RSS <= 1<<20 || u.PeakRSS < u.RSS {
		t.Errorf("memory %d bytes, at most %d", u.RSS, u.PeakRSS)
	}
}
