package client_test

import (
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachServer runs a test against beanpole, and against beanstalkd if it is installed.
func eachServer(t *testing.T, f func(t *testing.T, addr string)) {
	t.Run("beanpole", func(t *testing.T) { f(t, start(t)) })
	t.Run("beanstalkd", func(t *testing.T) { f(t, conformance.Beanstalkd(t)) })
}

func start(t *testing.T) string { return beanpoletest.NewServer(t).Addr }

func serve(t *testing.T, l net.Listener) *beanpoletest.Server {
	srv := beanpoletest.Serve(l)
	t.Cleanup(srv.Close)
	return srv
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, addr string, opt *client.Options) *client.Conn {
	t.Helper()
	c, err := client.Dial(t.Context(), addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// A peeked is the result of PeekTube.
type peeked struct {
	id   uint64
	body string
}

func peekTube(t *testing.T, c *client.Conn, state client.State) (peeked, error) {
	id, body, err := c.PeekTube(t.Context(), "mail", state)
	return peeked{id, string(body)}, err
}

// second returns only the error of a result.
func second[T any](_ T, err error) error { return err }

// get returns a result, and panics if there is an error.
func get[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// watched returns the tubes that any connection watches.
func watched(t *testing.T, c *client.Conn) (tubes []string) {
	for _, tube := range get(c.ListTubes(t.Context())) {
		if get(c.StatsTube(t.Context(), tube)).Watching > 0 {
			tubes = append(tubes, tube)
		}
	}
	return tubes
}
