package client_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// Each command returns a job or an error, for any bytes that the server sends.
func FuzzReplies(f *testing.F) {
	f.Fuzz(func(t *testing.T, replies []byte) {
		says := func(context.Context, string, string) (net.Conn, error) {
			return &talker{in: bytes.NewReader(replies)}, nil
		}
		c, err := client.Dial(t.Context(), "fuzz", &client.Options{Dial: says, Reconnect: client.Never})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := t.Context()
		job, err := c.ReserveTimeout(ctx, 0)
		if (job == nil) == (err == nil) {
			t.Errorf("%v, %v", job, err)
		}
		jobs, err := c.ReserveMany(ctx, 3, 0)
		if (len(jobs) == 0) == (err == nil) {
			t.Errorf("%v, %v", jobs, err)
		}
		if st, err := c.Stats(ctx); (st == nil) == (err == nil) {
			t.Errorf("%v, %v", st, err)
		}
		if sts, err := c.StatsTubeMany(ctx, []string{"a", "b"}); err == nil && (sts[0] == nil || sts[1] == nil) {
			t.Error("no statistics and no error")
		}
		if id, err := c.Put(ctx, client.NewJob{}); err != nil && id != 0 && !bytes.Contains(replies, []byte("BURIED")) {
			t.Errorf("%d, %v", id, err)
		}
		if ids, err := c.PutMany(ctx, make([]client.NewJob, 2)); len(ids) != 2 {
			t.Errorf("%v, %v", ids, err)
		}
		c.ListTubes(ctx)
		c.FlushTube(ctx, "mail", client.StateReady, 5)
		c.DeleteAndReserve(ctx, []uint64{1, 2}, 2, nil)
		c.ReserveMany(ctx, 2, 0)
		c.Caps(ctx)
	})
}

// A talker is a connection that discards all writes and returns fixed data.
type talker struct {
	net.Conn // nil: the test calls no other methods
	in       io.Reader
}

func (s *talker) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *talker) Write(b []byte) (int, error) { return len(b), nil }
func (s *talker) Close() error                { return nil }
func (s *talker) SetDeadline(time.Time) error { return nil }
