// Package parallel runs tests in parallel that mostly wait.
package parallel

import (
	"flag"
	"strconv"
	"testing"
)

// An M runs tests, up to Most of them in parallel unless the command line sets the
// number. Most can exceed the number of processors, because the tests mostly wait.
type M struct {
	*testing.M
	Most int
}

// Run is Run of [testing.M].
func (m M) Run() int {
	if !flag.Parsed() {
		flag.Parse()
	}
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		flag.Set("test.parallel", strconv.Itoa(m.Most))
	}
	return m.M.Run()
}
