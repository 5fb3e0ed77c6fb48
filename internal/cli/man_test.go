package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/config"
)

// pagesOf writes the manual and returns the pages as plain text, by the names of
// their files.
func pagesOf(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := writeManual(newRoot("1.2.3"), dir, "../../dist/beanpole.toml", md2man.Render); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "man[15]", "*"))
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(text)
		if man, err := exec.LookPath("groff"); err == nil {
			out, err := exec.Command(man, "-ww", "-Tutf8", "-man", "-z", file).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("groff complains of %s: %v\n%s", filepath.Base(file), err, out)
			}
		}
	}
	return pages
}

// The manual has all commands, options, settings, signals and exit codes, and each page
// says of which version it is.
func TestManual(t *testing.T) {
	pages := pagesOf(t)
	for _, name := range []string{"beanpole-put.1", "beanpole-journal.1", "beanpole-journal-check.1", "beanpole-config-print.1"} {
		if pages[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	program := pages["beanpole.1"]
	wanted := []string{
		".SH SIGNALS\n", ".SH ENVIRONMENT\n", "\n.SH FILES\n", "\n.SH EXIT STATUS\n", "USR1", "BEANPOLE_TOKEN", "BEANPOLE_ADMIN_ADDR", `\fBbeanpole\-put(1)\fP`,
		`\fB\-\-slow\-turn TIME\fP`, `\fB\-b, \-\-journal DIR\fP`, ".SS Limits\n", `beanpole.toml(5)`,
	}
	for _, code := range []int{0, 1, 2, 3, 4, 5, 10, 32, 33, 34, 111, 130} {
		wanted = append(wanted, fmt.Sprintf(`\fB%d\fP`, code))
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	opt := config.Default()
	opt.Define(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			wanted = append(wanted, strings.ReplaceAll("--"+f.Name, "-", `\-`))
		}
	})
	for _, text := range wanted {
		if !strings.Contains(program, text) {
			t.Errorf("beanpole(1) has no %q", text)
		}
	}
	settings := pages["beanpole.toml.5"]
	s, err := config.NewCommandLine(opt, flags).Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(s.Names(), []string{"[[rule]]"}) {
		if !strings.Contains(settings, strings.ReplaceAll(name, "-", `\-`)) {
			t.Errorf("beanpole.toml(5) has no %s", name)
		}
	}
	for name, text := range pages {
		if strings.HasSuffix(name, ".1") && !strings.Contains(text, "\n.SH EXIT STATUS\n") {
			t.Errorf("%s says nothing of exit codes", name)
		}
		_, header, _ := strings.Cut(text, ".TH ")
		if header, _, _ = strings.Cut(header, "\n"); !strings.Contains(header, "beanpole "+strings.ReplaceAll("1.2.3", "-", `\-`)) {
			t.Errorf("%s begins with %s", name, header)
		}
	}
}
