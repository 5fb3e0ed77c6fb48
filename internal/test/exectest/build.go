package exectest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const module = "github.com/beanpole-mq/beanpole"

// builtIn is the directory of Program's binary, or "" before the binary is built.
var builtIn string

// Program returns the path of the server's binary. It builds the binary once for all
// tests of a package. The package's TestMain must call Main.
var Program = sync.OnceValues(func() (path string, err error) {
	if builtIn, err = os.MkdirTemp("", "beanpole"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "beanpole")
	return path, Build(path)
})

// Main runs the tests of a package and removes the binary of Program.
func Main(m interface{ Run() int }) int {
	defer func() {
		if builtIn != "" {
			os.RemoveAll(builtIn)
		}
	}()
	return m.Run()
}

// Build builds the server for tests, including tests in another module. It reads each
// source file within the test, so that go test does not reuse a cached result of an older
// server.
func Build(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	root, err := goTool("", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	// Unlike go build, go run takes a linked program from the build cache.
	if _, err := goTool(root, "run", "-exec", "cp", "./cmd/beanpole", path); err != nil {
		return err
	}
	const names = `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	sources, err := goTool(root, "list", "-deps", "-f", "{{if not .Standard}}"+names+"{{.Module.GoMod}}\n{{end}}", "./cmd/beanpole")
	if err != nil {
		return err
	}
	for name := range strings.Lines(sources) {
		if _, err := os.Stat(strings.TrimSpace(name)); err != nil && strings.TrimSpace(name) != "" {
			return fmt.Errorf("read the sources of beanpole: %w", err)
		}
	}
	return nil
}

// goTool runs the go command in a directory.
func goTool(dir string, args ...string) (stdout string, err error) {
	var stderr strings.Builder
	cmd := exec.Command("go", args...) // #nosec G204 -- for tests
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build beanpole: go %s: %w\n%s", args[0], err, stderr.String())
	}
	return string(out), nil
}
