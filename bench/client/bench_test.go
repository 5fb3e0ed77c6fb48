package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/beanpole-mq/beanpole/client"
)

// A parrot takes everything and always says the same: what is measured is the
// client alone, without a system call.
type parrot struct {
	net.Conn // nil: for the methods that nobody calls
	says     string
}

func (p *parrot) Read(b []byte) (int, error)      { return copy(b, p.says), nil }
func (p *parrot) Write(b []byte) (int, error)     { return len(b), nil }
func (p *parrot) Close() error                    { return nil }
func (p *parrot) SetDeadline(time.Time) error     { return nil }
func (p *parrot) SetReadDeadline(time.Time) error { return nil }

func BenchmarkPut(b *testing.B) {
	p := &parrot{says: "INSERTED 1\r\n"}
	b.Run("go-beanstalk", func(b *testing.B) {
		c := &theirs{beanstalk.NewConn(p)}
		b.ReportAllocs()
		if err := c.put(b.N); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("client", func(b *testing.B) { benchOurs(b, p, func(o *ours) error { return o.put(b.N) }) })
}

func BenchmarkReserve(b *testing.B) {
	p := &parrot{says: "RESERVED 1 5\r\nhello\r\n"}
	b.Run("go-beanstalk", func(b *testing.B) {
		c := &theirs{beanstalk.NewConn(p)}
		b.ReportAllocs()
		if err := c.reserve(b.N); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("client", func(b *testing.B) { benchOurs(b, p, func(o *ours) error { return o.reserve(b.N) }) })
}

func benchOurs(b *testing.B, p *parrot, f func(*ours) error) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	c, err := client.Dial(ctx, "parrot", &client.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return p, nil }})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	if err := f(&ours{c, ctx, 1, cancel}); err != nil {
		b.Fatal(err)
	}
}
