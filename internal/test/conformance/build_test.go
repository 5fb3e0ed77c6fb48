package conformance

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// buildDir holds the binary that build made; TestMain removes it.
var buildDir string

// build builds our server once for all tests that need it.
var build = sync.OnceValues(func() (path string, err error) {
	if buildDir, err = os.MkdirTemp("", "beanpole"); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "beanpole")
	return path, Build(path)
})

// beanpole returns our server, built from cmd/beanpole unless -server names
// another program.
func beanpole(t *testing.T) Process {
	t.Helper()
	if *serverPath != "" {
		return Process{Path: *serverPath}
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return Process{Path: path}
}
