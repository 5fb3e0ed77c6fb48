package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/beanpole-mq/beanpole/client"
)

// bodySize is how large the jobs are, in bytes.
const bodySize = 64

// batchSize is how many jobs a batch has.
const batchSize = 100

// A contender puts and reserves jobs, as fast as it can, in one goroutine.
type contender struct {
	name  string
	dial  func(addr string) (session, error)
	times int // as many jobs as the others it does
}

type session interface {
	// put puts n jobs into the tube default.
	put(n int) error

	// reserve takes n jobs that are there. They stay reserved until Close.
	reserve(n int) error

	io.Closer
}

var contenders = []contender{
	{"bare socket", dialBare, 1},
	{"go-beanstalk", dialTheirs, 1},
	{"client", dialOurs(context.Background(), 1), 1},
	{"client, context that can be cancelled", dialCancellable, 1},
	{"client, batches of " + strconv.Itoa(batchSize), dialOurs(context.Background(), batchSize), 10},
}

var body = bytes.Repeat([]byte("x"), bodySize)

// A bare session does nothing that it need not do: its commands are constant, and
// of the replies only the length is looked at.
type bare struct {
	net.Conn
	in *bufio.Reader
}

func dialBare(addr string) (session, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &bare{nc, bufio.NewReader(nc)}, nil
}

var (
	barePut     = fmt.Appendf(nil, "put 0 0 60 %d\r\n%s\r\n", bodySize, body)
	bareReserve = []byte("reserve-with-timeout 1\r\n")
)

func (b *bare) put(n int) error { return b.send(n, barePut, "INSERTED ", 0) }

func (b *bare) reserve(n int) error {
	return b.send(n, bareReserve, "RESERVED ", bodySize+len("\r\n"))
}

func (b *bare) send(n int, command []byte, reply string, after int) error {
	for range n {
		if _, err := b.Write(command); err != nil {
			return err
		}
		line, err := b.in.ReadSlice('\n')
		if err != nil || !bytes.HasPrefix(line, []byte(reply)) {
			return fmt.Errorf("%q: %w", line, err)
		}
		if _, err := b.in.Discard(after); err != nil {
			return err
		}
	}
	return nil
}

type theirs struct{ *beanstalk.Conn }

func dialTheirs(addr string) (session, error) {
	c, err := beanstalk.Dial("tcp", addr)
	return &theirs{c}, err
}

func (t *theirs) put(n int) error {
	for range n {
		if _, err := t.Put(body, 0, 0, time.Minute); err != nil {
			return err
		}
	}
	return nil
}

func (t *theirs) reserve(n int) error {
	for range n {
		if _, _, err := t.Reserve(time.Second); err != nil {
			return err
		}
	}
	return nil
}

type ours struct {
	*client.Conn
	ctx   context.Context
	batch int
	end   context.CancelFunc
}

func dialOurs(ctx context.Context, batch int) func(addr string) (session, error) {
	return func(addr string) (session, error) {
		c, err := client.Dial(ctx, addr, nil)
		return &ours{c, ctx, batch, func() {}}, err
	}
}

func dialCancellable(addr string) (session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c, err := client.Dial(ctx, addr, nil)
	return &ours{c, ctx, 1, cancel}, err
}

func (o *ours) Close() error {
	o.end()
	return o.Conn.Close()
}

func (o *ours) put(n int) error {
	job := client.NewJob{Body: body}
	if o.batch == 1 {
		for range n {
			if _, err := o.Put(o.ctx, job); err != nil {
				return err
			}
		}
		return nil
	}
	jobs := make([]client.NewJob, o.batch)
	for i := range jobs {
		jobs[i] = job
	}
	for ; n > 0; n -= o.batch {
		if _, err := o.PutMany(o.ctx, jobs[:min(n, o.batch)]); err != nil {
			return err
		}
	}
	return nil
}

func (o *ours) reserve(n int) error {
	for ; n > 0; n -= o.batch {
		if o.batch == 1 {
			if _, err := o.ReserveTimeout(o.ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		want := min(n, o.batch)
		jobs, err := o.ReserveMany(o.ctx, want, time.Second)
		if err == nil && len(jobs) != want {
			err = fmt.Errorf("%d jobs, want %d", len(jobs), want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
