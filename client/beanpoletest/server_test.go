package beanpoletest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

const token = "0123456789abcdefghij"

func dial(t *testing.T, srv *beanpoletest.Server, token string) (*client.Conn, error) {
	c, err := client.Dial(t.Context(), srv.Addr, &client.Options{Dial: srv.Dial, TLS: srv.TLS, Token: token})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func put(ctx context.Context, c *client.Conn, tube string, size int) error {
	_, err := c.Put(ctx, client.NewJob{Tube: tube, Body: make([]byte, size)})
	return err
}

// The options work with sockets and in memory, with and without TLS.
func TestOptions(t *testing.T) {
	test := func(t *testing.T, memory, encrypted bool) {
		srv := beanpoletest.New(t, beanpoletest.Options{
			Memory: memory, TLS: encrypted, Token: token, MaxJobSize: 2000,
		})
		c, err := dial(t, srv, "")
		if err == nil {
			err = put(t.Context(), c, "mail", 1)
		}
		if !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("without a token: %v", err)
		}
		if c, err = dial(t, srv, token); err != nil {
			t.Fatal(err)
		}
		if err := put(t.Context(), c, "mail", 2000); err != nil {
			t.Errorf("a body of 2000 bytes: %v", err)
		}
		if err := put(t.Context(), c, "mail", 2001); !errors.Is(err, client.ErrJobTooBig) {
			t.Errorf("a body of 2001 bytes: %v", err)
		}
	}
	for _, encrypted := range []bool{false, true} {
		t.Run("sockets", func(t *testing.T) { test(t, false, encrypted) })
		t.Run("memory", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, true, encrypted) }) })
	}
}

// With a full disk, jobs can be reserved and deleted, but not changed in other ways.
func TestFillDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		srv := beanpoletest.NewMemory(t)
		c, err := dial(t, srv, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := put(ctx, c, "", 1); err != nil {
			t.Fatal(err)
		}
		srv.FillDisk(true)
		if err := put(ctx, c, "", 1); !errors.Is(err, client.ErrOutOfMemory) {
			t.Errorf("put: %v", err)
		}
		job, err := c.Reserve(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Touch(ctx); err != nil {
			t.Errorf("touch: %v", err)
		}
		if err := job.Release(ctx, time.Hour); !errors.Is(err, client.ErrOutOfMemory) {
			t.Errorf("release: %v", err)
		}
		if err := job.Delete(ctx); err != nil {
			t.Errorf("delete: %v", err)
		}
		srv.FillDisk(false)
		if err := put(ctx, c, "", 1); err != nil {
			t.Errorf("put after the disk has space again: %v", err)
		}
	})
}
