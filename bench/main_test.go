package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/parallel"
)

// binary is our server, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "responder" { // started by a test
		respond(os.Args[2])
		return
	}
	goleak.VerifyTestMain(built{m})
}

// built runs the tests with the binary there.
type built struct{ *testing.M }

func (b built) Run() (code int) {
	var err error
	if binary, err = exectest.Program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return exectest.Main(parallel.M{M: b.M, Most: 8})
}

func beanpole() Server {
	return Server{Command: []string{binary, "-l", "127.0.0.1", "-p", "{port}"}}
}

func responder() Server {
	return Server{Name: "responder", Command: []string{os.Args[0], "responder", "127.0.0.1:{port}"}}
}

// respond is the process of a responder.
func respond(addr string) {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		err = load.Responder(context.Background(), l)
	}
	fmt.Fprintln(os.Stderr, err)
}

// beanstalkd is the real one, or the test is skipped.
func beanstalkd(t *testing.T) Server {
	t.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		t.Skip("beanstalkd is not installed")
	}
	return Server{Command: []string{path, "-l", "127.0.0.1", "-p", "{port}"}}
}
