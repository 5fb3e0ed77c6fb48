package load

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	stat := "4711 (a ) b (c) S 1 4711 4711 0 -1 4194560 1 2 3 4 150 25 7 8 20 0 1 0 100\n"
	if cpu, ok := parseStat([]byte(stat)); !ok || cpu != 1750*time.Millisecond {
		t.Errorf("cpu %v, %v", cpu, ok)
	}
	for _, bad := range []string{"", "1 (x) S 1 2", "1 (x) S 1 2 3 4 5 6 7 8 9 10 eleven 12 13 14"} {
		if cpu, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q gave %v", bad, cpu)
		}
	}
}

func TestStatusBytes(t *testing.T) {
	status := []byte("Name:\tbeanstalkd\nVmHWM:\t    2048 kB\nVmRSS:\t       3 kB\n")
	if n := statusBytes(status, "VmHWM:"); n != 2<<20 {
		t.Errorf("VmHWM %d", n)
	}
	if n := statusBytes(status, "VmSwap:"); n != 0 {
		t.Errorf("VmSwap %d", n)
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
