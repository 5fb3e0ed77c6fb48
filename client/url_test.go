package client_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
)

// A URL can contain an address, a token and the TLS settings. Errors omit the token.
func TestURL(t *testing.T) {
	ca := localca.New(t)
	l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{ca.Pair("queue")}})
	addr := play(t, l, `
		> auth s3/cret
		< AUTHENTICATED
		> list-tube-used
		< USING default`)
	c := dial(t, "beanpole://s3%2Fcret@"+addr+"/?ca="+url.QueryEscape(ca.File)+"&server-name=localhost", nil)
	must(t, c.Ping(t.Context()))
	if got := c.Addr(); got != addr {
		t.Errorf("the address is %s, want %s", got, addr)
	}
}

// The URL of a socket has a path and no host.
func TestURLOfSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	serve(t, get(net.Listen("unix", path)))
	p := newPool(t, "beanpole://"+path+"?tls=false", nil)
	get(p.Put(t.Context(), client.NewJob{Tube: "mail", Body: []byte("hello")}))
	must(t, p.PauseTube(t.Context(), "mail", time.Hour))
	if st := get(p.StatsTube(t.Context(), "mail")); st.JobsReady != 1 || st.Pause == 0 {
		t.Errorf("%+v", st)
	}
	job := get(p.Put(t.Context(), client.NewJob{Tube: "mail", Delay: time.Hour}))
	must(t, p.KickJob(t.Context(), job))
	get(p.Put(t.Context(), client.NewJob{Tube: "mail", Delay: time.Hour}))
	if n := get(p.Kick(t.Context(), "mail", 10)); n != 1 {
		t.Errorf("%d jobs were kicked", n)
	}
	if st := get(p.StatsJob(t.Context(), job)); st.Kicks != 1 {
		t.Errorf("%+v", st)
	}
	if st := get(p.Stats(t.Context())); st.JobsReady != 3 {
		t.Errorf("%+v", st)
	}
}

// The host of a URL can be a list.
func TestURLOfList(t *testing.T) {
	for _, tc := range []struct{ url, addr, token string }{
		{"beanpole://s3cret@a:1,b:2,[::1]:3/?tls=true", "a:1,b:2,[::1]:3", "s3cret"},
		{"beanpole://a,b", "a,b", ""},
		{"beanpole:///run/a,b", "unix:/run/a,b", ""},
	} {
		addr, opt, err := client.ParseURL(tc.url)
		if err != nil || addr != tc.addr || opt.Token != tc.token {
			t.Errorf("%s: %q, token %q, %v", tc.url, addr, opt.Token, err)
		}
		if _, err := client.NewPool(tc.url, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestBadURL(t *testing.T) {
	for _, addr := range []string{
		"beanpole://s3cret@host:port:port",
		"beanpole://s3cret@%zz",
		"beanpole://s3cret@host/path",
		"beanpole://user:s3cret@host",
		"beanpole://s3cret@host?tls=perhaps",
		"beanpole://s3cret@host?timeout=1",
		"beanpole://s3cret@host?ca=/does/not/exist",
		"beanpole://s3cret@host?cert=/does/not/exist",
		"beanpole://s3cret@host,,host",
		"beanpole://host,beanpole://s3cret@host",
		"host,beanpole://s3cret@host",
	} {
		_, err := client.NewPool(addr, nil)
		if !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%s: %v", addr, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error contains the token: %v", addr, err)
		}
	}
}
