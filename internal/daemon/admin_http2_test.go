package daemon

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin/door"
)

// A browser gets HTTP/2 from the listener of the admin pages, and a stream through it.
func TestHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			w.Write([]byte("event "))
			http.NewResponseController(w).Flush() // if that fails, the client lacks events
		}
	}))
	srv.StartTLS()
	certificates := srv.TLS.Certificates
	client := srv.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	defer srv.Close()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := door.New(l, door.Options{Requests: 4})
	pages := &http.Server{Handler: srv.Config.Handler, ReadHeaderTimeout: time.Minute}
	d.Guard(pages)
	config := withHTTP2(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: certificates}, nil
	}})
	go pages.Serve(tls.NewListener(d, config))
	defer pages.Close()
	resp, err := client.Get("https://" + d.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events, err := io.ReadAll(resp.Body)
	if err != nil || string(events) != "event event event " || resp.ProtoMajor != 2 {
		t.Errorf("the listener speaks %s, and says %q: %v", resp.Proto, events, err)
	}
}
