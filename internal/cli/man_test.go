package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The manual has a page for each command and for the settings, and groff accepts all
// pages.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "run", "-tags", "manual", "../../cmd/beanpole", "man", dir, "../../doc/configuration.md")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, texts := range map[string][]string{
		"man1/beanpole.1":               {"BEANPOLE_TOKEN", "BEANPOLE_ADMIN_ADDR", "token-file", "exit codes", "130", "beanpole-put(1)"},
		"man1/beanpole-serve.1":         {"slow-turn", "max-memory", "USR1"},
		"man1/beanpole-put.1":           {"--ttr TIME", "EXAMPLE"},
		"man1/beanpole-journal-check.1": {"SYNOPSIS"},
		"man1/beanpole-config-print.1":  {"SYNOPSIS"},
		"man5/beanpole.toml.5":          {"max-job-size", "rule"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, text := range texts {
			if plain := strings.ReplaceAll(string(page), `\`, ""); !strings.Contains(plain, text) || strings.Contains(plain, "=[]") {
				t.Errorf("%s does not contain %q", name, text)
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "man[15]", "*"))
	for _, file := range files {
		out, err := exec.Command(groff, "-t", "-Kutf8", "-Tutf8", "-man", "-z", file).CombinedOutput()
		if err != nil {
			t.Errorf("groff %s: %v\n%s", filepath.Base(file), err, out)
		}
	}
}
