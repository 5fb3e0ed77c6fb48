package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const program = "github.com/beanpole-mq/beanpole/cmd/beanpole"

// Build builds our server, for tests. It looks at each of its sources, as files of the
// test: so go test does not take from its cache what a test has said of another server.
func Build(path string) error {
	// Unlike go build, go run takes a program from the build cache that was linked before.
	out, err := exec.Command("go", "run", "-exec", "cp", program, path).CombinedOutput() // #nosec G204 -- for tests
	if err != nil {
		return fmt.Errorf("build beanpole: %w\n%s", err, out)
	}
	const names = `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	out, err = exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}"+names+"{{.Module.GoMod}}\n{{end}}", program).Output()
	if err != nil {
		return fmt.Errorf("list the sources of beanpole: %w", err)
	}
	for name := range strings.Lines(string(out)) {
		if _, err := os.Stat(strings.TrimSpace(name)); err != nil && strings.TrimSpace(name) != "" {
			return fmt.Errorf("look at the sources of beanpole: %w", err)
		}
	}
	return nil
}
