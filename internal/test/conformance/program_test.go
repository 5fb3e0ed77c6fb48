package conformance

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// beanpole returns our server, built from cmd/beanpole unless -server specifies another
// program.
func beanpole(t *testing.T) Process {
	t.Helper()
	if *serverPath != "" {
		return Process{Path: *serverPath}
	}
	path, err := exectest.Program()
	if err != nil {
		t.Fatal(err)
	}
	return Process{Path: path}
}
