// Command interop runs Go clients against a beanstalk server at $ADDR:
//
//	interop client    go-beanstalk through the whole life of a job
//	interop monitor   requests and parsers of Telegraf, KEDA and Prometheus exporters
//	interop expect    replies on which clients and tools rely
//
// "expect" also starts, drains and stops servers of the program $SERVER.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

func main() {
	suites := map[string]func(addr string) []check{"client": clientChecks, "monitor": monitorChecks, "expect": expectChecks}
	if len(os.Args) != 2 || suites[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: ADDR=host:port SERVER=program interop client|monitor|expect")
		os.Exit(2)
	}
	titles := map[string]string{
		"client":  "go-beanstalk " + version("github.com/beanstalkd/go-beanstalk"),
		"monitor": "monitors, with yaml.v2 " + version("gopkg.in/yaml.v2"),
		"expect":  "expectations of clients and tools",
	}
	report(titles[os.Args[1]], suites[os.Args[1]](os.Getenv("ADDR")))
}

// version returns the version of a module that this program was built with.
func version(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "?"
}
