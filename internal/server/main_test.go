package server

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/internal/test/parallel"
)

// TestMain checks that no goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(parallel.M{M: m, Most: 8}) }
