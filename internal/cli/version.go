package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// versionKey is the annotation of the root command that contains the version.
const versionKey = "version"

// versionOf returns the version of the program of a command.
func versionOf(cmd *cobra.Command) string { return cmd.Root().Annotations[versionKey] }

func newVersion() *cobra.Command {
	return cliutil.NewCommand("version", "print the version of this binary", "", "  beanpole version", "", func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\ngo       %s %s/%s\n", versionOf(cmd), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
