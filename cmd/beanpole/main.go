// Command beanpole is a work queue server that speaks the beanstalk protocol. It is also
// the server's command-line tool and load generator: beanpole --help lists the commands.
//
// Package internal/daemon runs the server, package internal/config defines its settings,
// and internal/cli contains the commands.
package main

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/cli"
)

// release is the version in builds from a tarball, which has no history: go build
// -ldflags "-X main.release=1.2.3" ./cmd/beanpole.
var release string

func main() {
	os.Exit(cli.Run(version(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// version returns the version of the release or of the module, or "devel" for a build
// from a working copy without tags.
func version() string {
	if release != "" {
		return release
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return strings.TrimPrefix(bi.Main.Version, "v")
	}
	return "devel"
}
