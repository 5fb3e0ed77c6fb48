// Package parallel lets tests that wait do so at the same time.
package parallel

import (
	"flag"
	"strconv"
	"testing"
)

// M runs tests of which Most may run in parallel, if the command line does not say how
// many: more than there are processors, as they mostly wait.
type M struct {
	*testing.M
	Most int
}

// Run is that of [testing.M].
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
