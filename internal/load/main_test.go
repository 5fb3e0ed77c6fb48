package load

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// responderEnv makes the test binary a responder at the address that is its
// first argument: the separate process that Ceiling wants.
const responderEnv = "BEANPOLE_LOAD_RESPONDER"

func TestMain(m *testing.M) {
	if os.Getenv(responderEnv) != "" {
		if err := respond(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func respond(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return Responder(context.Background(), l)
}
