package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help of each command starts with a description, usage and examples.
func TestHelpStartsWithUsageAndExamples(t *testing.T) {
	var check func(cmd *cobra.Command, path []string)
	check = func(cmd *cobra.Command, path []string) {
		for _, c := range cmd.Commands() {
			if slices.Contains([]string{"help", "completion"}, c.Name()) || !c.IsAvailableCommand() {
				continue
			}
			path := append(slices.Clone(path), c.Name())
			var out bytes.Buffer
			code := Run("1.2.3", append(path, "--help"), strings.NewReader(""), &out, &out)
			parts := strings.SplitN(out.String(), "\n\n", 4)
			if code != 0 || len(parts) < 4 || !strings.HasPrefix(parts[1], "Usage:\n  beanpole ") || !strings.HasPrefix(parts[2], "Examples:\n  ") {
				t.Errorf("%q: code %d\n%s", path, code, &out)
			}
			for line := range strings.Lines(out.String()) {
				if strings.Contains(line, "(default )") || len(line) > 101 && !strings.HasPrefix(line, " ") {
					t.Errorf("%q: empty default or long line: %s", path, line)
				}
			}
			check(c, path)
		}
	}
	check(newRoot("1.2.3"), nil)
}

// Only the topic connection describes the connection options.
func TestHelpOfConnection(t *testing.T) {
	for _, name := range []string{"connection", "put", "jobs"} {
		var out bytes.Buffer
		if code := Run("1.2.3", []string{"help", name}, strings.NewReader(""), &out, &out); code != 0 {
			t.Errorf("help %s: code %d", name, code)
		}
		if got, want := strings.Contains(out.String(), "--tls-server-name"), name == "connection"; got != want {
			t.Errorf("help %s contains --tls-server-name: %v, want %v", name, got, want)
		}
	}
}
