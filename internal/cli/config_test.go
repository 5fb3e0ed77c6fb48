package cli

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/config"
)

// noDefault contains the settings without a default.
var noDefault = []string{"listen", "user", "journal", "networks", "proxy-protocol", "tls-cert", "tls-key", "tls-client-ca", "admin", "admin-socket", "admin-host"}

// TestExampleConfig compares the annotated example with the program. The example contains
// each setting once, with its default, and changes nothing.
func TestExampleConfig(t *testing.T) {
	const path = "../../dist/beanpole.toml"
	if got, want := printed(t, "--config", path), printed(t); got != want {
		t.Errorf("the example changes something:\n%s", cmp.Diff(want, got))
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commented := regexp.MustCompile(`(?m)^# ([a-z-]+ = )`)
	var example, defaults map[string]any
	if _, err := toml.Decode(commented.ReplaceAllString(string(text), "$1"), &example); err != nil {
		t.Fatal(err)
	}
	if _, err := toml.Decode(printed(t), &defaults); err != nil {
		t.Fatal(err)
	}
	for _, name := range noDefault {
		if _, ok := example[name]; !ok {
			t.Errorf("the example does not have %s", name)
		}
		delete(example, name)
	}
	if diff := cmp.Diff(defaults, example); diff != "" {
		t.Errorf("the example differs from the program (- program, + example):\n%s", diff)
	}
	s, err := config.NewCommandLine(config.Default(), newServe().Flags()).Read()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(noDefault, slices.Collect(maps.Keys(defaults)))
	slices.Sort(names)
	known := slices.Sorted(slices.Values(s.Names()))
	if !slices.Equal(names, known) {
		t.Errorf("settings %v, in the example %v", known, names)
	}
}

// doc/configuration.md lists the settings in order, with their letters and defaults.
func TestConfigurationPage(t *testing.T) {
	page, err := os.ReadFile("../../doc/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z-]+`(?:, `-.`)?) \\| (.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		if !strings.HasPrefix(row[2], "`") {
			row[2] = "" // the usage contains the default
		}
		got = append(got, row[1]+" "+row[2])
	}
	defaults := printed(t)
	flags := newServe().Flags()
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains([]string{"config", "version", "help"}, f.Name) {
			return
		}
		name, value := "`"+f.Name+"`", ""
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		if m := regexp.MustCompile(`(?m)^` + f.Name + ` = (.*?) +#`).FindStringSubmatch(defaults); m != nil {
			value = "`" + m[1] + "`"
		}
		want = append(want, name+" "+value)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- program, + page:\n%s", diff)
	}
}

// TestConfigPrint checks that the output of config print works as a configuration file.
func TestConfigPrint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "beanpole.toml")
	args := []string{"-l", ":1", "-l", "unix:s", "-p", "11301", "-u", "nobody", "--unix-mode", "600", "-z", "7",
		"--max-connections", "3", "--idle-timeout", "90s", "--stall-timeout", "0", "-b", "jobs", "-F", "-s", "5000",
		"-VV", "--log-format", "json"}
	want := printed(t, args...)
	if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(want, `listen = [":1", "unix:s"]`) || !strings.Contains(want, "verbose = 2") {
		t.Errorf("the output omits settings of the command line:\n%s", want)
	}
	sources := regexp.MustCompile(` +#.*`)
	got := printed(t, "--config", path)
	if diff := cmp.Diff(sources.ReplaceAllString(want, ""), sources.ReplaceAllString(got, "")); diff != "" {
		t.Errorf("as a configuration file, the output gives other settings:\n%s", diff)
	}
}

// printed returns the output of config print for a command line.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := Run("1.2.3", slices.Concat([]string{"config", "print"}, args), io.LimitReader(nil, 0), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	return stdout.String()
}
