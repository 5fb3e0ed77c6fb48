package daemon

import "testing"

// Memory is given back when something has been freed, and not again and again for
// what is in use.
func TestMemoryWorthCollecting(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		last, now memoryUse
		want      bool
	}{
		{memoryUse{}, memoryUse{unaccounted: 10 * mb}, false},
		{memoryUse{}, memoryUse{unaccounted: 40 * mb}, true},
		{memoryUse{unaccounted: 100 * mb}, memoryUse{unaccounted: 150 * mb}, false},
		{memoryUse{unaccounted: 100 * mb}, memoryUse{unaccounted: 160 * mb}, true},
		{memoryUse{100 * mb, 1000}, memoryUse{100 * mb, 800}, false},
		{memoryUse{100 * mb, 1000}, memoryUse{100 * mb, 700}, true},
		{memoryUse{10 * mb, 1000}, memoryUse{10 * mb, 0}, false},
	} {
		if got := test.now.worthCollecting(test.last); got != test.want {
			t.Errorf("%+v after %+v: %v", test.now, test.last, got)
		}
	}
}
