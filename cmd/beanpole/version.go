package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// release is set by those who build from a tarball, which has no history:
// go build -ldflags "-X main.release=1.2.3" ./cmd/beanpole.
var release string

// version returns beanpole's version: that of the release or of the module, or
// "devel" for a build from a working copy without tags.
func version() string {
	if release != "" {
		return release
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return strings.TrimPrefix(bi.Main.Version, "v")
	}
	return "devel"
}

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
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of this binary",
		Args:  kit.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\ngo       %s %s/%s\ncommit   %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit())
			return err
		},
	}
}
