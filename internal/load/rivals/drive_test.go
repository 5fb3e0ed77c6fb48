package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// TestFailures: a server that hangs up, says something else or breaks off in the
// middle of a reply ends the run with an error that says so; other connections,
// which would wait forever, end too.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct{ says, want string }{
		"hangs up":     {"", io.EOF.Error()},
		"breaks off":   {"INSERTED", io.EOF.Error()},
		"refuses":      {"DRAINING\r\n", `unexpected reply to put: "DRAINING\r\n"`},
		"is no server": {"220 mail\r\n", `"220 mail\r\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &load.Process{Addr: oneReply(t, test.says)}
			shape := loadShape{Connections: 3, InFlight: 1, BodySize: 64, Duration: time.Hour}
			_, err := drive(t.Context(), p, beanstalkContender("x", "x", "").connect, shape)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// oneReply listens. The first connection is told this when it has asked, and is
// then closed; the others are never answered.
func oneReply(t *testing.T, says string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		// What is left unread would turn the hang-up into a reset.
		if _, err := io.ReadAtLeast(nc, make([]byte, 1<<10), 64); err == nil {
			io.WriteString(nc, says)
		}
	}()
	return l.Addr().String()
}
