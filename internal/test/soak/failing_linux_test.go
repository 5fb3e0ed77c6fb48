package soak

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Clients connect, put, read the answer and close while the disk fails now and
// then. Each gets one answer, INSERTED or an error, and the server lives.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	if !hasStrace(nil) {
		t.Skip("needs strace")
	}
	for _, tc := range []struct {
		name, call, errno string
		args              []string
	}{
		{"sync", "fdatasync", "EIO", nil},
		{"sync in between", "fdatasync", "EIO", []string{"-f", "50"}},
		{"write", "pwrite64", "ENOSPC", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSoak(t)
			srv, err := start(s.program, append([]string{"-l", "127.0.0.1:0", "-b", s.dir}, tc.args...), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, srv.log)
			}
			defer func() {
				srv.cmd.Process.Kill()
				<-srv.exited
			}()
			burnIDs(t, srv, 100_000)
			stop := strace(t, srv, tc.call, tc.errno)
			inserted, failed := comeAndGo(t, s, srv)
			stop()
			if !srv.alive() {
				t.Fatalf("the server ended: %v\n%s", srv.cmd.ProcessState, srv.log)
			}
			if inserted < 200 || failed < 24 {
				t.Errorf("%d puts succeeded and %d failed: too little happened", inserted, failed)
			}
		})
	}
}

// burnIDs makes ids long: a put without CR LF after its body costs one.
func burnIDs(t *testing.T, srv *server, n int) {
	t.Helper()
	nc, err := net.Dial(srv.addrs[0].Network(), srv.addrs[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	go nc.Write(bytes.Repeat([]byte("put 0 0 9 0\r\nxx"), n))
	if _, err := io.ReadFull(nc, make([]byte, n*len("EXPECTED_CRLF\r\n"))); err != nil {
		t.Fatal(err)
	}
}

// strace makes a call of the server fail every fourth time until stop is called.
func strace(t *testing.T, srv *server, call, errno string) (stop func()) {
	t.Helper()
	calls := filepath.Join(t.TempDir(), "calls")
	cmd, letGo := tracer("-f", "-e", "signal=none", "-o", calls, "-p", fmt.Sprint(srv.pid()), "-e", "trace="+call, "-e", "inject="+call+":error="+errno+":when=10+4")
	awaitAttached(t, cmd)
	return func() {
		letGo()
		text, _ := os.ReadFile(calls)
		if !strings.Contains(string(text), "(INJECTED)") {
			t.Errorf("no call failed:\n%.2000s", text)
		}
	}
}

// awaitAttached starts a tracer and waits until it traces.
func awaitAttached(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	attached, w := io.Pipe()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := make([]byte, 1000)
	n, err := attached.Read(says)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(says[:n], []byte("attached")) {
		t.Skipf("strace may not attach: %s", says[:n])
	}
	go io.Copy(io.Discard, attached)
}

// comeAndGo lets 24 clients come and go until puts enough have failed.
func comeAndGo(t *testing.T, s *soak, srv *server) (inserted, failed int64) {
	s.account.diskFails = true
	var good, bad atomic.Int64
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(s.seed, uint64(i)))
			for end := time.Now().Add(5 * patience); (good.Load() < 200 || bad.Load() < 24) && time.Now().Before(end); {
				ok, err := once(s.account, rng, srv)
				if err != nil {
					if srv.alive() {
						t.Error(err)
					}
					return
				}
				if ok {
					good.Add(1)
				} else {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return good.Load(), bad.Load()
}

// once puts a job from a connection of its own, and reports whether it was taken.
func once(l *account, rng *rand.Rand, srv *server) (inserted bool, err error) {
	nc, err := net.Dial(srv.addrs[0].Network(), srv.addrs[0].String())
	if err != nil {
		return false, err
	}
	c := &client{account: l, rng: rng, nc: nc, using: "default"}
	defer c.close()
	l.mu.Lock()
	cmd := c.put()
	l.mu.Unlock()
	then := cmd.then
	cmd.then = func(r *wire.Reply) error {
		inserted = r.Kind == wire.Inserted
		return then(r)
	}
	if err = c.talk([]*command{cmd}); err != nil {
		return false, err
	}
	if err := c.write([]byte("quit\r\n")); err != nil {
		return inserted, err
	}
	var r wire.Reply
	if err = c.read(&r, false); err == nil || len(c.in) > 0 {
		return inserted, wrong("after the answer: %v, %q", r.Kind, c.in)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return inserted, err
}
