package load

import (
	"os"
	"testing"
)

// The usage of this process is that which the kernel counts otherwise.
func TestUsage(t *testing.T) {
	for spent := clientCPU(); clientCPU() < spent+5*clockTick; { // so that there is something to see
	}
	before := clientCPU()
	u, ok := UsageOf(os.Getpid())
	if after := clientCPU(); !ok || u.CPU < before-2*clockTick || u.CPU > after+2*clockTick {
		t.Errorf("processor time %v (%v), and by getrusage between %v and %v", u.CPU, ok, before, after)
	}
	if u.RSS <= 1<<20 || u.PeakRSS < u.RSS {
		t.Errorf("memory %d bytes, at most %d", u.RSS, u.PeakRSS)
	}
	for _, pid := range []int{0, -1} {
		if u, ok := UsageOf(pid); ok {
			t.Errorf("process %d: %+v", pid, u)
		}
	}
}

func TestNames(t *testing.T) {
	for m := range numMixes {
		var back Mix
		if text, _ := m.MarshalText(); back.UnmarshalText(text) != nil || back != m {
			t.Errorf("%v came back as %v", m, back)
		}
	}
	var m Mix
	const want = `no mix is called "pour"; there are: put-reserve-delete, put, drain, put-delete, wake`
	if err := m.UnmarshalText([]byte("pour")); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}
