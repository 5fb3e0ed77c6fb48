// Command beanpole is a work queue server that speaks the beanstalk protocol,
// its command-line tool and its load generator.
//
//	beanpole [options]              run the server; beanstalkd's options work unchanged
//	beanpole serve [options]        the same
//	beanpole config COMMAND         check, explain or show the server's configuration
//	beanpole put|peek|tubes|...     for a person at the keyboard
//	beanpole token new|hash         make tokens for clients
//	beanpole journal COMMAND DIR    check, dump, repair or copy a journal
//	beanpole cluster COMMAND ...    create a cluster and manage its members
//	beanpole bench [options]        benchmark a server
//	beanpole version                what this binary was built from
//	beanpole help [command]
//
// The life of a server is package internal/daemon, its settings are package internal/config,
// and the commands are below internal/cli.
package main

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/cli"
)

// release is set by those who build from a tarball, which has no history:
// go build -ldflags "-X main.release=1.2.3" ./cmd/beanpole.
var release string

func main() {
	os.Exit(cli.Run(version(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

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
