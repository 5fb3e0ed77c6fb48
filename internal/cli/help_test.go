package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help of each command says what it does, and then gives examples; but for those of which
// there is nothing to show.
func TestHelpBeginsWithExamples(t *testing.T) {
	var look func(cmd *cobra.Command, path []string)
	look = func(cmd *cobra.Command, path []string) {
		for _, c := range cmd.Commands() {
			if slices.Contains([]string{"help", "version"}, c.Name()) || !c.IsAvailableCommand() {
				continue
			}
			path := append(slices.Clone(path), c.Name())
			var out bytes.Buffer
			code := Run("1.2.3", append(path, "--help"), strings.NewReader(""), &out, &out)
			parts := strings.SplitN(out.String(), "\n\n", 3)
			if code != 0 || len(parts) < 3 || !strings.HasPrefix(parts[1], "Examples:\n  ") {
				t.Errorf("%q: code %d\n%s", path, code, &out)
			}
			look(c, path)
		}
	}
	look(newRoot("1.2.3"), nil)
}
