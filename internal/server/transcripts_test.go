package server

import (
	"net"
	"strconv"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

// The server passes every transcript of the conformance suite, in this process and in
// fake time.
func TestTranscripts(t *testing.T) {
	conformance.RunInBubble(t, inProcess{}, conformance.Beanpole)
}

type inProcess struct{}

func (inProcess) Start(tb testing.TB, args []string) conformance.Instance {
	tb.Helper()
	var opt Options
	if len(args) > 0 {
		if len(args) != 2 || args[0] != "-z" {
			tb.Fatalf("flags %q: only -z is supported here", args)
		}
		n, err := strconv.Atoi(args[1])
		if err != nil {
			tb.Fatal(err)
		}
		if opt.MaxJobSize = n; n == 0 {
			opt.MaxJobSize = -1
		}
	}
	return instance{start(tb, opt)}
}

type instance struct{ *rig }

func (in instance) Dial() (net.Conn, error) { return in.pipe() }

func (in instance) Drain() error {
	in.rig.SetDraining(true)
	return nil
}
