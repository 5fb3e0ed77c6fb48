package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// versionKey is the annotation of the root command with the version of the program.
const versionKey = "version"

// versionOf returns the version of the program that a command is of.
func versionOf(cmd *cobra.Command) string { return cmd.Root().Annotations[versionKey] }

// commit describes the revision that the binary was built from, if that is
// known.
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
	return cliutil.NewCommand("version", "print the version of this binary", "", "", "", func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\ngo       %s %s/%s\ncommit   %s\n",
			versionOf(cmd), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit())
		return err
	})
}
