package client_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
)

// play is a server that follows a script for each connection. The server expects each
// line that starts with "> ", and sends each line that starts with "< ", both with CR LF.
// It closes a connection at the end of its script.
func play(t *testing.T, l net.Listener, scripts ...string) string {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, script := range scripts {
			nc, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			playOne(t, nc, script)
			nc.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func playOne(t *testing.T, nc net.Conn, script string) {
	r := bufio.NewReader(nc)
	for line := range strings.Lines(script) {
		line, direction := strings.Trim(line, "\t\n"), ""
		if len(line) >= 2 {
			direction, line = line[:2], line[2:]+"\r\n"
		}
		switch direction {
		case "< ":
			io.WriteString(nc, line)
		case "> ":
			got, err := r.ReadString('\n')
			if got != line {
				t.Errorf("got %q (%v), want %q", got, err, line)
				return
			}
		}
	}
}

func TestToken(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		want         error
	}{
		{"beanstalkd-rs", `
			> auth s3cret
			< AUTHENTICATED
			> list-tube-used
			< USING default`, nil},
		{"OK", `
			> auth s3cret
			< OK
			> list-tube-used
			< USING default`, nil},
		{"wrong", `
			> auth s3cret
			< UNAUTHORIZED`, client.ErrUnauthorized},
		{"beanstalkd", `
			> auth s3cret
			< UNKNOWN_COMMAND`, client.ErrUnknownCommand},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr := play(t, listen(t), tc.script)
			c, err := client.Dial(t.Context(), addr, &client.Options{Token: "s3cret"})
			wantErr(t, err, tc.want)
			if err != nil {
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the error contains the token: %v", err)
				}
				return
			}
			defer c.Close()
			must(t, c.Ping(t.Context()))
		})
	}
}

// A new connection authenticates again before it watches tubes.
func TestTokenAgain(t *testing.T) {
	addr := play(t, listen(t), `
		> auth s3cret
		< AUTHENTICATED
		> watch mail
		> ignore default
		< WATCHING 2
		< WATCHING 1
		> list-tube-used`, `
		> auth s3cret
		< AUTHENTICATED
		> watch mail
		> ignore default
		< WATCHING 2
		< WATCHING 1
		> list-tube-used
		< USING default`)
	ctx := t.Context()
	c := dial(t, addr, &client.Options{Token: "s3cret"})
	must(t, c.WatchOnly(ctx, "mail"))
	must(t, c.Ping(ctx))
}

// A refused command does not close the connection. If a use is refused, its put is not
// sent.
func TestRefused(t *testing.T) {
	c := dial(t, play(t, listen(t), `
		> use secret
		< UNAUTHORIZED
		> list-tube-used
		< USING default
		> put 1024 0 60 1
		> x
		< UNAUTHORIZED
		> put 1024 0 60 1
		> x
		< BURIED 7
		> put 1024 0 60 0
		> 
		< BURIED 8
		> put 1024 0 60 0
		> 
		< DRAINING
		> delete 1
		< INTERNAL_ERROR
		> touch 1
		< OUT_OF_MEMORY
		> kick 1
		< KICKED 0`), nil)
	ctx := t.Context()
	wantErr(t, second(c.Put(ctx, client.NewJob{Tube: "secret", Body: []byte("x")})), client.ErrUnauthorized)
	must(t, c.Ping(ctx))
	wantErr(t, second(c.Put(ctx, client.NewJob{Body: []byte("x")})), client.ErrUnauthorized)
	id, err := c.Put(ctx, client.NewJob{Body: []byte("x")})
	wantErr(t, err, client.ErrBuried)
	if id != 7 {
		t.Errorf("the job that was buried is %d", id)
	}
	ids, err := c.PutMany(ctx, make([]client.NewJob, 1))
	wantErr(t, err, client.ErrBuried)
	if len(ids) != 1 || ids[0] != 8 {
		t.Errorf("the job that was buried is %d", ids)
	}
	wantErr(t, second(c.Put(ctx, client.NewJob{})), client.ErrDraining)
	wantErr(t, c.Delete(ctx, 1), client.ErrInternal)
	wantErr(t, c.Touch(ctx, 1), client.ErrOutOfMemory)
	get(c.Kick(ctx, "", 1))
}

// After an invalid reply the connection is not used again.
func TestSenseless(t *testing.T) {
	for _, reply := range []string{"HELLO", "INSERTED 1", "OK", "OK 3\n< abc", "DELETED 5"} {
		t.Run(reply, func(t *testing.T) {
			c := dial(t, play(t, listen(t), "> stats\n< "+reply, "> list-tube-used\n< USING default"), nil)
			wantErr(t, second(c.Stats(t.Context())), client.ErrProtocol)
			must(t, c.Ping(t.Context()))
		})
	}
	// The server could parse the rest of a body as commands.
	for _, reply := range []string{"BAD_FORMAT", "EXPECTED_CRLF"} {
		t.Run(reply, func(t *testing.T) {
			c := dial(t, play(t, listen(t), "> put 1024 0 60 0\n> \n< "+reply, "> list-tube-used\n< USING default"), nil)
			wantErr(t, second(c.Put(t.Context(), client.NewJob{})), client.ErrBadFormat)
			must(t, c.Ping(t.Context()))
		})
	}
}

// TLS works with and without a client certificate. Wrong names and certificates are
// refused.
func TestTLS(t *testing.T) {
	ca := localca.New(t)
	serverConfig := &tls.Config{
		Certificates: []tls.Certificate{ca.Pair("server")},
		ClientCAs:    ca.Pool(),
		ClientAuth:   tls.VerifyClientCertIfGiven,
	}
	srv := serve(t, tls.NewListener(listen(t), serverConfig))
	ctx := t.Context()
	for _, config := range []*tls.Config{
		{RootCAs: ca.Pool()}, // verifies the host of the address, 127.0.0.1
		{RootCAs: ca.Pool(), ServerName: "localhost"},
		{RootCAs: ca.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{ca.Pair("client")}},
		{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS12},
		{InsecureSkipVerify: true},
	} {
		c := dial(t, srv.Addr, &client.Options{TLS: config})
		get(c.PutMany(ctx, make([]client.NewJob, 500)))
		get(c.ReserveMany(ctx, 500, 0))
		get(c.Put(ctx, client.NewJob{}))
	}
	for _, config := range []*tls.Config{
		{}, // an unknown authority
		{RootCAs: ca.Pool(), ServerName: "other.example"},
	} {
		wantErr(t, second(client.Dial(ctx, srv.Addr, &client.Options{TLS: config})), client.ErrDisconnected)
	}
	// A TLS server sends no reply that a client without TLS could misinterpret.
	c := dial(t, srv.Addr, &client.Options{Reconnect: client.Never})
	if err := c.Ping(ctx); err == nil {
		t.Error("a server with TLS answers a client without")
	}
}

// A server without TLS waits for the rest of the supposed command, or closes the
// connection.
func TestNotTLS(t *testing.T) {
	opt := &client.Options{TLS: &tls.Config{InsecureSkipVerify: true}, DialTimeout: 50 * time.Millisecond}
	eachServer(t, func(t *testing.T, addr string) {
		wantErr(t, second(client.Dial(t.Context(), addr, opt)), client.ErrDisconnected)
	})
}
