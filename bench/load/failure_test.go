package load

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A fakeServer answers each command with what its function appends; nil hangs
// up. Commands that choose tubes are answered as they should be.
type fakeServer func(cmd *wire.Command, out []byte) []byte

// start returns the address of the server, which ends with the test.
func (f fakeServer) start(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serve(t, l)
	return l.Addr().String()
}

// serve serves a listener until the test ends.
func (f fakeServer) serve(t *testing.T, l net.Listener) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				f.talk(nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
}

func (f fakeServer) talk(nc net.Conn) {
	p := wire.Parser{MaxBody: maxBody}
	var cmd wire.Command
	var in, out []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := nc.Read(buf)
		if err != nil {
			return
		}
		in, out = append(in, buf[:n]...), out[:0]
		for {
			n, ok := p.Next(in, &cmd)
			if ok {
				if out = f.answer(&cmd, out); out == nil {
					return
				}
			}
			in = in[n:]
			if n == 0 {
				break
			}
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

func (f fakeServer) answer(cmd *wire.Command, out []byte) []byte {
	switch cmd.Op {
	case wire.Use:
		return wire.AppendUsing(out, string(cmd.Tube))
	case wire.Watch, wire.Ignore:
		return wire.AppendWatching(out, 1)
	}
	return f(cmd, out)
}

func TestSurprisesFailTheRun(t *testing.T) {
	tests := []struct {
		name   string
		server fakeServer
		want   string // in the error
	}{
		{"put refused", func(_ *wire.Command, out []byte) []byte {
			return wire.AppendWord(out, wire.OutOfMemory)
		}, `unexpected reply to put: "` + wire.OutOfMemory.String() + `"`},
		{"another command's reply", func(_ *wire.Command, out []byte) []byte {
			return wire.AppendWord(out, wire.Deleted)
		}, "unexpected reply to put"},
		{"a body that was not put", func(cmd *wire.Command, out []byte) []byte {
			if cmd.Op == wire.Put {
				return wire.AppendInserted(out, 1)
			}
			return wire.AppendReserved(out, 7, []byte("something else"))
		}, "job 7 has a body of 14 bytes that is not the one of 64 bytes"},
		{"a body with one wrong byte", func(cmd *wire.Command, out []byte) []byte {
			if cmd.Op == wire.Put {
				return wire.AppendInserted(out, 1)
			}
			body := newBody(64)
			body[33]++
			return wire.AppendReserved(out, 7, body)
		}, "job 7 has a body"},
		{"delete finds nothing", func(cmd *wire.Command, out []byte) []byte {
			switch cmd.Op {
			case wire.Put:
				return wire.AppendInserted(out, 1)
			case wire.Reserve:
				return wire.AppendReserved(out, 1, newBody(64))
			}
			return wire.AppendWord(out, wire.NotFound)
		}, "unexpected reply to delete"},
		{"one reply too many", func(_ *wire.Command, out []byte) []byte {
			return wire.AppendInserted(wire.AppendInserted(out, 1), 2)
		}, "a reply to no command"},
		{"no reply at all", func(_ *wire.Command, out []byte) []byte {
			return append(out, "What?\r\n"...)
		}, `not a reply: "What?"`},
		{"hangs up", func(*wire.Command, []byte) []byte { return nil }, "the server closed the connection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := tt.server.start(t)
			_, err := Run(t.Context(), Options{Addr: addr, Ops: 10})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestTubeRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		nc.Write(wire.AppendWord(nil, wire.BadFormat))
		nc.Read(make([]byte, 1024)) // or the reset could overtake the reply
	}()
	_, err = Run(t.Context(), Options{Addr: l.Addr().String(), Tube: "odd"})
	if err == nil || !strings.Contains(err.Error(), `choose tube "odd": load: unexpected reply: "BAD_FORMAT"`) {
		t.Errorf("error %v", err)
	}
	<-done
}

func TestNobodyListens(t *testing.T) {
	_, err := Run(t.Context(), Options{Addr: "127.0.0.1:0"}) // no port that anybody could have
	if err == nil || !strings.Contains(err.Error(), "load: connect") {
		t.Errorf("error %v", err)
	}
}

// A server that has stopped answering does not keep Run from ending with its context.
func TestCancelWhileTheServerIsSilent(t *testing.T) {
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	addr := fakeServer(func(_ *wire.Command, out []byte) []byte {
		cancel(errEnough)
		return out
	}).start(t)
	if _, err := Run(ctx, Options{Addr: addr, Connections: 3, Ops: 10}); !errors.Is(err, errEnough) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

// Nor does one that accepts and never says a word.
func TestCancelWhileChoosingTubes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := Run(ctx, Options{Addr: l.Addr().String(), Connections: 2})
		done <- err
	}()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	cancel(errEnough)
	if err := <-done; !errors.Is(err, errEnough) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

// The phases follow the options, on a clock that costs nothing.
func TestConduct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{opt: Options{Duration: time.Hour}, base: time.Now()}
		var seen []phase
		sp, err := r.conduct(t.Context(), func(context.Context) error {
			for _, at := range []time.Duration{3 * time.Minute, 30 * time.Minute, 33*time.Minute + 5*time.Second} {
				time.Sleep(at)
				seen = append(seen, r.inPhase())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 3 || seen[0] != warming || seen[1] != measuring || seen[2] != stopping {
			t.Errorf("phases %v", seen)
		}
		if d := time.Duration(sp.to.at - sp.from.at); d != time.Hour || sp.whole {
			t.Errorf("measured %v, whole %v", d, sp.whole)
		}
	})
}

func TestConductGivesUpOnASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{opt: Options{Duration: time.Second}, base: time.Now()}
		_, err := r.conduct(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || !strings.Contains(err.Error(), "unanswered") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(r.base); took != time.Second+time.Second/10+stopGrace {
			t.Errorf("gave up after %v", took)
		}
	})
}
