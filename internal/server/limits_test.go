package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// standstill contains the input that a client sends before and during a standstill of the
// process that exceeds the client's limit.
var standstill = map[string]struct {
	opt           Options
	before, while string
}{
	"idle":    {Options{IdleTimeout: time.Minute}, "use x\n", "use x\nuse y\n"},
	"stalled": {Options{StallTimeout: time.Minute}, "use x\nuse ", "y\n"},
}

// A body of the maximum size arrives in any pieces, and its buffer is freed afterwards.
func TestLargeBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = 5 << 20
		r := start(t, Options{MaxJobSize: size})
		c := r.dial()
		body := strings.Repeat("x", size)
		c.do(fmt.Sprintf("put 0 0 9 %d\n%s\n", size, body), "INSERTED 1\n")
		c.do("peek 1\n", fmt.Sprintf("FOUND 1 %d\n%s\n", size, body))
		synctest.Wait()
		if in, out := r.conn().Memory(); in > 256<<10 || out > 0 {
			t.Errorf("afterwards the connection keeps %d bytes for input and %d for replies", in, out)
		}
		c.send(fmt.Sprintf("put 0 0 9 %d\n", size+1))
		io.WriteString(c.nc, body+"x\r\n")
		c.want("JOB_TOO_BIG\n")
	})
}

// A client that requests much and does not read is disconnected. Until then the server
// buffers a bounded amount for it and serves other clients.
func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit, size = time.Minute, 60_000
		r := start(t, Options{StallTimeout: limit})
		slow := r.dial()
		slow.do(fmt.Sprintf("put 0 0 9 %d\n%s\n", size, strings.Repeat("x", size)), "INSERTED 1\n")
		go io.WriteString(slow.nc, strings.Repeat("peek 1\r\n", 100_000)) // 6 GB of replies
		synctest.Wait()
		if !seeds.Race { // synctest cannot wait for the loop under the race detector
			if in, out := r.conn().Memory(); in > 128<<10 || out > 2*(256<<10+size) {
				t.Errorf("%d bytes of input and %d of replies are held for a client that does not read", in, out)
			}
		}
		other := r.dial()
		for range 11 {
			other.do("use x\n", "USING x\n")
			time.Sleep(limit / 8)
		}
		r.wantConns(1)
	})
}

// If accept fails, for example without free descriptors, the server pauses, logs an error
// a minute, and serves connected clients. It continues when accept works again.
func TestAcceptErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logged{}
		r := start(t, Options{Logger: slog.New(log)})
		connected := r.dial()
		began := time.Now()
		for range 3 {
			r.net.Errs <- errNoFiles
			connected.do("use x\n", "USING x\n")
		}
		if took := time.Since(began); took != 2*acceptPause {
			t.Errorf("3 attempts took %v", took)
		}
		r.dial().do("use x\n", "USING x\n")
		if n := log.count("cannot accept connections"); n != 1 {
			t.Errorf("logged %d times: %q", n, log.lines)
		}
	})
}

var errNoFiles = &net.OpError{Op: "accept", Net: "mem", Err: errors.New("too many open files")}

// logged is a slog.Handler that stores messages of level info and above.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logged) WithGroup(string) slog.Handler                    { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Message)
	return nil
}

func (l *logged) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// The server does not execute HTTP requests, which a web page can make a browser send. It
// logs them at a limited rate.
func TestHTTP(t *testing.T) {
	var log bytes.Buffer
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, request := range []string{
			"POST / HTTP/1.1\nContent-Length: 20\n\nput 0 0 9 1\na\n",
			"GET / HTTP/1.1\nHost: localhost:11300\n\nput 0 0 9 1\na\n",
			"POST /" + strings.Repeat("x", 500) + " HTTP/1.1\n\nput 0 0 9 1\na\n",
			"PUT / HTTP/1.1\nhost: " + strings.Repeat("x", 500) + "\n\nput 0 0 9 1\na\n",
		} {
			c := r.dial()
			c.do("use a\n", "USING a\n")
			c.send(request)
			c.wantEnd()
		}
		synctest.Wait() // the last request is logged when its connection is closed
		if n := r.stats().TotalJobs; n != 0 {
			t.Errorf("%d jobs were put", n)
		}
		if n := strings.Count(log.String(), "spoke HTTP"); n != 1 || !strings.Contains(log.String(), "client=mem") {
			t.Errorf("%d warnings, want 1 with the client:\n%s", n, &log)
		}
		time.Sleep(time.Minute)
		r.dial().send("Host: a\n")
		synctest.Wait()
		if n := strings.Count(log.String(), "spoke HTTP"); n != 2 {
			t.Errorf("%d warnings a minute later, want 2:\n%s", n, &log)
		}
	})
}

// The engine's limits give the reply that beanstalkd sends when it has no memory.
func TestEngineLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limits := engine.Limits{Tubes: 2, Watches: 2, Tube: func(string) engine.TubeLimits { return engine.TubeLimits{Jobs: 1} }}
		r := startEngine(t, Options{}, broker.Options{}, engine.Options{Limits: limits})
		r.dial().do("use a\nuse b\nwatch a\nwatch b\nput 0 0 9 0\n\nput 0 0 9 0\n\ndelete 1\nput 0 0 9 0\n\n",
			"USING a\nOUT_OF_MEMORY\nWATCHING 2\nOUT_OF_MEMORY\nINSERTED 1\nOUT_OF_MEMORY\nDELETED\nINSERTED 3\n")
	})
}

// The log contains changes through the protocol, and the tube on which a client lacks a
// right.
func TestChangesAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log safeBuffer
		control := controlOf(t, access.Config{Rules: []access.RuleConfig{{Identities: []string{"*"}, Tubes: []string{"mail"}, Rights: rights.All}}})
		r := start(t, Options{Access: control, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.dial().do("pause-tube news 5\nuse mail\npause-tube mail 5\n", "UNAUTHORIZED\nUSING mail\nPAUSED\n")
		for _, want := range []string{
			`level=WARN msg="a client was refused" client=mem identity="" refused=pause-tube tube=news`,
			`level=INFO msg="a change through the protocol" command=pause-tube identity="" client=mem tube=mail seconds=5`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no line %s:\n%s", want, log.String())
			}
		}
	})
}
