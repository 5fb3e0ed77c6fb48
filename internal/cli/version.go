package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// versionKey is the annotation of the root command that contains the version.
const versionKey = "version"

// versionOf returns the version of the program of a command.
func versionOf(cmd *cobra.Command) string { return cmd.Root().Annotations[versionKey] }

// commit describes the revision of the binary, or returns "unknown".
func commit() string {
	settings := make(map[string]string)
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			settings[s.Key] = s.Value
		}
	}
	revision := settings["vcs.revision"]
	switch {
	case revision == "":
		return "unknown"
	case settings["vcs.modified"] == "true":
		return revision + " of " + settings["vcs.time"] + ", modified"
	default:
		return revision + " of " + settings["vcs.time"]
	}
}

func newVersion() *cobra.Command {
	return cliutil.NewCommand("version", "print the version of this binary", "", "  beanpole version", "", func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\ngo       %s %s/%s\ncommit   %s\n",
			versionOf(cmd), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit())
		return err
	})
}
