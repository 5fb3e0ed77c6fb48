package queue

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
)

// Completion uses the connection options on the command line.
func TestCompleteTLS(t *testing.T) {
	ca := localca.New(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{ca.Pair("server")}})
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	defer beanpoletest.Serve(l).Close()
	cmd := newPeek()
	if err := cmd.ParseFlags([]string{"--addr", addr, "--tls-ca", ca.File, "--server-timeout", "30s"}); err != nil {
		t.Fatal(err)
	}
	if names, _ := cmd.ValidArgsFunction(cmd, nil, ""); !slices.Equal(names, []string{"default"}) {
		t.Errorf("the tubes are %q, want default", names)
	}
}
