package memnet

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The network has the properties that tests rely on.
func TestMemNet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf [Buffer]byte
		a, b := Pipe()

		if n, err := a.Write(make([]byte, Buffer)); n != Buffer || err != nil {
			t.Fatalf("filling the buffer: %d, %v", n, err)
		}
		start := time.Now()
		a.SetWriteDeadline(start.Add(time.Second))
		if n, err := a.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write to a full buffer: %d, %v", n, err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("the deadline of one second expired after %v", d)
		}
		a.SetWriteDeadline(time.Time{})
		go a.Write([]byte("behind"))
		synctest.Wait()
		io.ReadFull(b, buf[:])
		if n, err := b.Read(buf[:]); string(buf[:n]) != "behind" || err != nil {
			t.Errorf("a blocked write: %q, %v", buf[:n], err)
		}

		go func() {
			time.Sleep(time.Second)
			b.SetReadDeadline(time.Unix(1, 0))
		}()
		if _, err := b.Read(buf[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an interrupted read: %v", err)
		}
		b.SetReadDeadline(time.Time{})

		a.Write([]byte("last"))
		a.CloseWrite()
		if all, err := io.ReadAll(b); string(all) != "last" || err != nil {
			t.Errorf("after a half-close: %q, %v", all, err)
		}
		b.Write([]byte("still open"))
		if n, err := a.Read(buf[:]); !bytes.Equal(buf[:n], []byte("still open")) || err != nil {
			t.Errorf("the other direction: %q, %v", buf[:n], err)
		}
		b.Close()
		if _, err := a.Read(buf[:]); err != io.EOF {
			t.Errorf("after a close: %v", err)
		}

		c, d := Pipe()
		c.Write([]byte("unread"))
		d.Write([]byte("lost"))
		d.Close()
		if _, err := c.Read(buf[:]); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after a close with unread input: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write to a closed connection: %v", err)
		}
	})
}
