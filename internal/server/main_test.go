package server

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine outlives the tests.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait; the command line overrides it
	goleak.VerifyTestMain(m)
}
