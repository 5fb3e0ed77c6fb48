package beanstalkd

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/api/tubes"
)

// Of those who wait for the tubes of a beanstalkd that does not answer, one asks it, and the others do not ask after that one by one.
func TestBeanstalkdIsAskedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for nc, err := l.Accept(); err == nil; nc, err = l.Accept() {
			asked++
			nc.Close()
		}
	}()
	b, err := New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	none := func(*tubes.Tube) { t.Error("there is a tube") }
	gone, leave := context.WithCancel(t.Context())
	leave()
	if b.survey(gone, none) == nil || b.why != nil {
		t.Error("a client that has gone says nothing of the server")
	}
	first := b.survey(t.Context(), none)
	if first == nil || b.failed.IsZero() {
		t.Fatal(first)
	}
	b.failed = time.Now().Add(time.Hour) // as if the next one had come before that
	if err := b.survey(t.Context(), none); err != first {
		t.Errorf("%v, want %v", err, first)
	}
	b.Close()
	l.Close()
	<-ended
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
}
