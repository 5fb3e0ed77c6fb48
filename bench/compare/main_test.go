package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"compare": main})
}

// TestScript runs the scripts in testdata, with our server as beanpole.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	if err := exectest.Build(filepath.Join(dir, "beanpole")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
	})
}
