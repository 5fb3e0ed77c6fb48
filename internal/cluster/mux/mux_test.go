package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/internal/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns the two sides of a connection, and the streams that the second side
// accepts.
func pair(t testing.TB) (own, other *Session, accepted <-chan *Stream) {
	a, b := memnet.Pipe()
	streams := make(chan *Stream, 1000)
	own, other = New(a, nil), New(b, func(s *Stream) { streams <- s })
	t.Cleanup(func() {
		own.Close()
		other.Close()
	})
	return own, other, streams
}

// connect opens a stream.
func connect(t testing.TB, s *Session, accepted <-chan *Stream) (own, other *Stream) {
	t.Helper()
	own, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	return own, <-accepted
}

// Streams do not mix, regardless of their number and the sizes of writes.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, _, accepted := pair(t)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				s, err := own.Open()
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				sent := bytes.Repeat([]byte{byte(i), 1, 2}, 3*Window)
				go func() {
					for rest, n := sent, 1; len(rest) > 0; n = 3*n + i {
						n = min(n, len(rest))
						s.Write(rest[:n])
						rest = rest[n:]
					}
					s.CloseWrite()
				}()
				if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%d bytes come back, of %d: %v", len(got), len(sent), err)
				}
			})
			other := <-accepted
			wg.Go(func() {
				io.Copy(other, other)
				other.Close()
			})
		}
		wg.Wait()
		own.mu.Lock()
		defer own.mu.Unlock()
		if len(own.streams) > 0 {
			t.Errorf("%d streams are remembered", len(own.streams))
		}
	})
}

// Data written before Close arrives. A later write is refused.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, _, accepted := pair(t)
		a, b := connect(t, own, accepted)
		a.Write([]byte("last words"))
		a.Close()
		if got, err := io.ReadAll(b); err != nil || string(got) != "last words" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, ErrGone) {
			t.Errorf("a write without a reader: %v", err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read of a closed stream: %v", err)
		}
		if _, err := a.Write(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write of a closed stream: %v", err)
		}
		b.Close()
		c, d := connect(t, own, accepted) // the session continues
		c.Write([]byte("x"))
		if n, err := d.Read(make([]byte, 2)); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// A stream whose reader stalls takes at most one window, and delays no other stream.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, _, accepted := pair(t)
		full, unread := connect(t, own, accepted)
		if n, err := full.TryWrite(make([]byte, 2*Window)); n != Window || err != nil {
			t.Fatal(n, err)
		}
		marked := make(chan struct{}, 10)
		full.Notify(func() { marked <- struct{}{} })
		if n, err := full.TryWrite([]byte("x")); n != 0 || err != nil {
			t.Error(n, err)
		}
		if _, writable, _ := full.Ready(); writable {
			t.Error("a full stream is ready to write")
		}
		for range 10 {
			a, b := connect(t, own, accepted)
			go func() {
				a.Write(make([]byte, 3*Window))
				a.Close()
			}()
			if n, err := io.Copy(io.Discard, b); n != 3*Window || err != nil {
				t.Error(n, err)
			}
			b.Close()
		}
		if n, err := unread.Read(make([]byte, Window)); n != Window || err != nil {
			t.Error(n, err)
		}
		<-marked
		if n, err := full.TryWrite(make([]byte, 2*Window)); n != Window || err != nil {
			t.Error(n, err)
		}
	})
}

// A gatedConn writes nothing while its gate is locked.
type gatedConn struct {
	net.Conn
	gate chan struct{} // locked while it is full
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.gate <- struct{}{}
	defer func() { <-c.gate }()
	return c.Conn.Write(b)
}

// While the other side has read all data of a stream, much data of other streams waits to
// be written. After that data is written, a loop that waits to write to the stream is
// notified.
func TestNotifyAfterCreditAndSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memnet.Pipe()
		conn := &gatedConn{a, make(chan struct{}, 1)}
		streams := make(chan *Stream, 1000)
		own, other := New(conn, nil), New(b, func(s *Stream) { streams <- s })
		defer other.Close()
		defer own.Close()
		full, unread := connect(t, own, streams)
		if n, err := full.TryWrite(make([]byte, 2*Window)); n != Window || err != nil {
			t.Fatal(n, err)
		}
		marked := 0
		full.Notify(func() { marked++ })
		synctest.Wait()

		conn.gate <- struct{}{}
		for n := 1; n > 0; {
			s, err := own.Open()
			synctest.Wait() // the gate holds up the first frame; the others wait
			if err == nil {
				n, err = s.TryWrite(make([]byte, Window))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n, err := unread.Read(make([]byte, Window)); n != Window || err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		if _, writable, _ := full.Ready(); writable || marked == 0 {
			t.Errorf("marked %d times of credit; ready to write: %v, but no data can be written", marked, writable)
		}

		marked = 0
		<-conn.gate
		synctest.Wait()
		if _, writable, _ := full.Ready(); !writable || marked == 0 {
			t.Errorf("marked %d times of space; ready to write: %v", marked, writable)
		}
	})
}

// A stream waits only once for space, even if the other side grants it credit several
// times.
func TestBlockedOnce(t *testing.T) {
	s := &Session{streams: map[uint32]*Stream{}, pending: make([]byte, maxPending)}
	st := s.add(1)
	for range 10 {
		if err := s.handle(1, kindCredit, 0, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := st.tryWrite([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.blocked) != 1 {
		t.Errorf("the stream waits %d times", len(s.blocked))
	}
}

// A loop is notified of arriving data.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, _, accepted := pair(t)
		a, b := connect(t, own, accepted)
		marked := 0
		b.Notify(func() { marked++ })
		buf := make([]byte, 10)
		if _, err := b.TryRead(buf); err != ErrWouldBlock {
			t.Error(err)
		}
		a.Write([]byte("hello"))
		synctest.Wait()
		if n, err := b.TryRead(buf[:2]); marked != 1 || n != 2 || err != nil {
			t.Error(marked, n, err)
		}
		if n, err := b.TryRead(buf); string(buf[:n]) != "llo" || err != nil {
			t.Errorf("%q, %v", buf[:n], err)
		}
		a.CloseWrite()
		synctest.Wait()
		if readable, _, ended := b.Ready(); marked != 2 || !readable || !ended {
			t.Error(marked, readable, ended)
		}
		if _, err := b.TryRead(buf); err != io.EOF {
			t.Error(err)
		}
		own.Close()
		synctest.Wait()
		if _, err := b.TryWrite(buf); marked != 3 || err == nil {
			t.Error(marked, err)
		}
	})
}

// A session without traffic continues. If the other side is silent, the session ends.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, other, accepted := pair(t)
		a, b := connect(t, own, accepted)
		time.Sleep(time.Hour)
		a.Write([]byte("x"))
		if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
		other.Close()
		<-own.Over()
		if _, err := a.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("a read after the end of the session: %v", err)
		}
		if _, err := own.Open(); err == nil {
			t.Error("a stream of an ended session")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conn, silent := memnet.Pipe()
		defer silent.Close()
		own := New(conn, nil)
		defer own.Close()
		began := time.Now()
		go io.Copy(io.Discard, silent)
		<-own.Over()
		if took := time.Since(began); took != silence {
			t.Errorf("it took %v", took)
		}
	})
}

func frame(id uint32, kind byte, length int, b []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, id)
	f = binary.BigEndian.AppendUint32(f, uint32(kind)<<24|uint32(length))
	return append(f, b...)
}

// A frame that this package never sends ends the session.
func TestHostile(t *testing.T) {
	open := frame(1, kindOpen, 0, nil)
	for name, input := range map[string][]byte{
		"no such kind":    append(open, frame(1, 99, 0, nil)...),
		"no such stream":  frame(7, kindData, 1, []byte("x")),
		"opened twice":    append(open, open...),
		"opened as 5":     frame(5, kindOpen, 0, nil),
		"too long":        append(open, frame(1, kindData, Window+1, nil)...),
		"over the window": bytes.Join([][]byte{open, frame(1, kindData, Window, make([]byte, Window)), frame(1, kindData, 1, []byte("x"))}, nil),
		"too much credit": append(open, frame(1, kindCredit, 1, nil)...),
		"after the end":   bytes.Join([][]byte{open, frame(1, kindEnd, 0, nil), frame(1, kindData, 1, []byte("x"))}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, hostile := memnet.Pipe()
				defer hostile.Close()
				own := New(conn, func(*Stream) {})
				defer own.Close()
				go io.Copy(io.Discard, hostile)
				began := time.Now()
				hostile.Write(input)
				<-own.Over()
				if !errors.Is(own.err, errProtocol) || time.Since(began) > 0 {
					t.Errorf("it ends after %v: %v", time.Since(began), own.err)
				}
			})
		})
	}
}

func FuzzSession(f *testing.F) {
	f.Add(bytes.Join([][]byte{frame(1, kindOpen, 0, nil), frame(1, kindData, 3, []byte("abc")), frame(1, kindEnd, 0, nil)}, nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			conn, hostile := memnet.Pipe()
			own := New(conn, func(s *Stream) { go io.Copy(s, s) })
			go io.Copy(io.Discard, hostile)
			hostile.Write(input)
			hostile.Close()
			<-own.Over()
			own.Close()
		})
	})
}

// A command and its reply cause no allocations.
func TestAllocs(t *testing.T) {
	own, _, accepted := pair(t)
	a, b := connect(t, own, accepted)
	buf, message := make([]byte, 1000), make([]byte, 300)
	if n := testing.AllocsPerRun(1000, func() {
		a.Write(message)
		io.ReadFull(b, buf[:300])
		b.Write(message[:10])
		io.ReadFull(a, buf[:10])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
