package beanpoletest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

var t *testing.T // the argument of a test

// The delayed job becomes ready without a wait, because the test uses fake time.
func ExampleNewMemory() {
	synctest.Test(t, func(t *testing.T) {
		srv := beanpoletest.NewMemory(t)
		c, err := client.Dial(t.Context(), srv.Addr, &client.Options{Dial: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		if _, err := c.Put(t.Context(), client.NewJob{Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reserve(t.Context()); err != nil || time.Since(began) < time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// This server requires TLS and a token.
func ExampleNew() {
	const token = "0123456789abcdefghij"
	srv := beanpoletest.New(t, beanpoletest.Options{TLS: true, Token: token})
	c, err := client.Dial(t.Context(), srv.Addr, &client.Options{TLS: srv.TLS, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), client.NewJob{Tube: "mail"}); err != nil {
		t.Error(err)
	}
}

func ExampleServer_FillDisk() {
	srv := beanpoletest.NewServer(t)
	c, err := client.Dial(t.Context(), srv.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	srv.FillDisk(true)
	if _, err := c.Put(t.Context(), client.NewJob{}); !errors.Is(err, client.ErrOutOfMemory) {
		t.Error(err)
	}
}
