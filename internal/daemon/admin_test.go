package daemon

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// A request that is under way when the server stops is answered.
func TestAdminStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &adminServer{listener: l}
	begun, release := make(chan struct{}), make(chan struct{})
	a.RegisterOnShutdown(func() { close(release) })
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		select {
		case <-release:
			io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	})
	go a.Serve(l)
	stopped := make(chan struct{})
	go func() {
		<-begun
		a.stop()
		close(stopped)
	}()
	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "done" {
		t.Errorf("%q, %v", body, err)
	}
	<-stopped
}
