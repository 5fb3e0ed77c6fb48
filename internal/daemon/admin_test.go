package daemon

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// The watchdog of the service manager is notified as long as the server executes
// commands.
func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000")
	start(t, "-p", "0")
	message := make([]byte, 100)
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		n, err := manager.Read(message)
		if got := string(message[:n]); err != nil || got != want {
			t.Fatalf("notified %q, %v; want %q", got, err, want)
		}
	}
}

// On loopback, the valid host names are those in --admin-host, such as a proxy's, and
// those of this machine.
func TestAdminHosts(t *testing.T) {
	p := start(t, "-p", "0", "--admin", "127.0.0.1:0", "--admin-host", "queue.example.com")
	address := p.await(adminLine)
	p.await("msg=ready ")
	for host, want := range map[string]int{
		"queue.example.com": 200, "QUEUE.example.com:443": 200, hostname() + ":11380": 200, "localhost": 200, "evil.example.com": 421,
	} {
		req, err := http.NewRequest("GET", "http://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %s: %s, want %d", host, res.Status, want)
		}
	}
}

// The server answers a current request before it stops.
func TestAdminStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := new(adminServer)
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
