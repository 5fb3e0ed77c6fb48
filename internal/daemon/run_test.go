package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon/asynclog"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func init() { adminsocket.System = os.TempDir() }

func commandLine(t *testing.T, args ...string) config.CommandLine {
	t.Helper()
	opt := config.Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	opt.Define(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.NewCommandLine(opt, flags)
}

// A process is a server that runs inside the test as it would in its own process.
type process struct {
	t       *testing.T
	signals chan os.Signal
	ended   chan struct{}
	err     error // result of the server

	mu     sync.Mutex
	log    strings.Builder
	more   chan struct{}     // each write closes and replaces it
	hearer func(line string) // if not nil, called with each line before the server continues
}

func start(t *testing.T, args ...string) *process { return startHeard(t, nil, args...) }

func startHeard(t *testing.T, hearer func(line string), args ...string) *process {
	t.Helper()
	p := &process{t: t, signals: make(chan os.Signal, 8), ended: make(chan struct{}), more: make(chan struct{}), hearer: hearer}
	line := commandLine(t, args...)
	go func() {
		defer close(p.ended)
		log := asynclog.New(p)
		p.err = run(context.Background(), Options{Version: "1.2.3", Line: line, Log: log}, p.signals)
		log.Flush(1<<63 - 1)
	}()
	t.Cleanup(func() { p.stop() })
	return p
}

// Write receives lines of the log.
func (p *process) Write(lines []byte) (int, error) {
	if p.hearer != nil {
		p.hearer(string(lines))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.log.Write(lines)
}

func (p *process) logged() (text string, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String(), p.more
}

// await waits until the log has a match, and returns its first group.
func (p *process) await(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(`(?m)` + pattern)
	for ended := false; ; {
		text, more := p.logged()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		if ended {
			p.t.Fatalf("the server exited (%v) without a log line that matches %s:\n%s", p.err, pattern, text)
		}
		select {
		case <-more:
		case <-p.ended:
			ended = true
		case <-time.After(patience):
			p.t.Fatalf("no line matches %s:\n%s", pattern, text)
		}
	}
}

// patience is the maximum wait for an expected event.
const patience = time.Minute

func configFile(t *testing.T) (path string, write func(text string)) {
	path = filepath.Join(t.TempDir(), "beanpole.toml")
	return path, func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// address waits until the server is ready, and returns its address for clients.
func (p *process) address() string {
	p.t.Helper()
	p.await("msg=ready ")
	return p.await(`msg=listening address=(\S+)`)
}

// stop sends SIGTERM, and returns the result of the server.
func (p *process) stop() error {
	select {
	case <-p.ended:
	case p.signals <- syscall.SIGTERM:
		<-p.ended
	}
	return p.err
}

func connect(t *testing.T, addr string, lines ...string) net.Conn {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, line := range lines {
		if _, err := io.WriteString(c, line+"\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func talk(t *testing.T, addr string, lines ...string) string {
	t.Helper()
	c := connect(t, addr, append(lines, "quit")...)
	defer c.Close()
	replies, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(replies), "\r\n", "\n")
}

// get returns the status and the text of an admin page. The path can begin with a token
// and an @.
func get(t *testing.T, addr, path string) string {
	t.Helper()
	token, rest, ok := strings.Cut(path, "@")
	if !ok {
		token, rest = "", path
	}
	req, err := http.NewRequest("GET", "http://"+addr+rest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

const adminLine = `serving the admin API" address=(\S+)`

// A server that reports that it is ready also serves its admin API.
func TestReadyLast(t *testing.T) {
	asked := false
	var address string
	p := startHeard(t, func(lines string) {
		if m := regexp.MustCompile(adminLine).FindStringSubmatch(lines); m != nil {
			address = m[1]
		}
		if strings.Contains(lines, "msg=ready ") {
			asked = true
			for _, path := range []string{"/readyz", "/metrics"} {
				if got := get(t, address, path); !strings.HasPrefix(got, "200 ") {
					t.Errorf("%s of a ready server: %s", path, got)
				}
			}
		}
	}, "-p", "0", "--admin", "127.0.0.1:0")
	p.await("msg=ready version=1.2.3 ")
	if err := p.stop(); err != nil || !asked {
		t.Errorf("ended with %v, ready: %v", err, asked)
	}
}

// SIGUSR1 drains the server, and SIGHUP reads the configuration again. SIGTERM and the
// end of the context stop the server, even if workers wait for jobs.
func TestSignals(t *testing.T) {
	path, write := configFile(t)
	write("max-tubes = 1\nport = 0")
	p := start(t, "--config", path)
	addr := p.address()
	if got := talk(t, addr, "put 0 0 60 1", "a", "use b"); got != "INSERTED 1\nOUT_OF_MEMORY\n" {
		t.Errorf("%q", got)
	}
	p.signals <- syscall.SIGUSR1
	p.await("draining")
	if got := talk(t, addr, "put 0 0 60 1", "b", "reserve", "delete 1"); got != "DRAINING\nRESERVED 1 1\na\nDELETED\n" {
		t.Errorf("%q", got)
	}
	write("max-tubes = x")
	p.signals <- syscall.SIGHUP
	p.await("invalid configuration; keeping the previous one")
	write("max-tubes = 4\nport = 1\n[[limit]]\ntubes = ['none']\njobs = 1")
	p.signals <- syscall.SIGHUP
	p.await("some settings have changed that take effect with the next restart.* settings=port$")
	if got := talk(t, addr, "use b"); got != "USING b\n" {
		t.Errorf("%q", got)
	}
	connect(t, addr, "reserve")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.await("msg=stopped$")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := run(ctx, Options{Line: commandLine(t, "-p", "0"), Log: asynclog.New(io.Discard)}, make(chan os.Signal)); err != nil {
		t.Error(err)
	}
}

// A server listens on several addresses, with and without ports. The default is both
// addresses of localhost, for programs that try ::1 first.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p := start(t, "-l", "127.0.0.1", "-l", ":0", "-l", "unix:"+path, "-p", "0", "--unix-mode", "600", "--admin", ":0")
	addr := p.address()
	for _, at := range []string{addr, "127.0.0.1" + p.await(`msg=listening address=(?:\[::\]|0\.0\.0\.0)(:\d+)`), "unix:" + path} {
		if got := talk(t, at, "list-tube-used"); got != "USING default\n" {
			t.Errorf("%s: %q", at, got)
		}
	}
	p.await("every client that can reach this address can use the queue")
	p.await("every client that can reach this address can manage the queue")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}

	_, port, _ := net.SplitHostPort(addr)
	taken := start(t, "-p", port)
	<-taken.ended
	if err := taken.err; err == nil || !strings.HasSuffix(err.Error(), "address already in use (if another beanstalkd or beanpole is running, choose a port with -p or an address with -l)") {
		t.Errorf("with a port in use: %v", err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket file was not removed")
	}

	p = start(t, "-p", port)
	p.address()
	for _, host := range []string{"127.0.0.1", "::1"} {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			continue // this machine has no IPv6
		} else {
			l.Close()
		}
		if got := talk(t, net.JoinHostPort(host, port), "list-tube-used"); got != "USING default\n" {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// Slow turns and syncs are logged with the time of each phase, unless that is disabled.
func TestSlow(t *testing.T) {
	for slow, told := range map[string]bool{"1ns": true, "0": false} {
		p := start(t, "-p", "0", "-b", t.TempDir(), "--slow-turn", slow, "--slow-sync", slow)
		if got := talk(t, p.address(), "put 0 0 60 5", "hello"); got != "INSERTED 1\n" {
			t.Errorf("%q", got)
		}
		if told {
			p.await(`level=WARN msg="a turn was slow" took=[0-9.]+[mnµ]?s requests=1 commands=[0-9]+ executing=.* writing=.* housekeeping=`)
			p.await(`level=WARN msg="a sync of the journal was slow" took=`)
			continue
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if text, _ := p.logged(); strings.Contains(text, "was slow") {
			t.Error(text)
		}
	}
}

// If the server cannot start, the error states the reason and a remedy.
func TestNoStart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-p", "0", "-l", "192.0.2.1"}, 111, "(no network interface of this machine has that address; -l 0.0.0.0 listens on all)"},
		{[]string{"-p", "0", "--admin", "192.0.2.1:80"}, 111, "--admin: listen on 192.0.2.1:80"},
		{[]string{"-p", "0", "--require-auth"}, 5, "require-auth needs an "},
		{[]string{"-p", "0", "--tls-cert", "x"}, 5, "TLS needs both tls-cert and tls-key"},
		{[]string{"-p", "0", "--tls-cert", "nowhere", "--tls-key", "nowhere"}, 5, "TLS certificate nowhere and key nowhere: open nowhere: no such file"},
		{[]string{"-p", "0", "-u", "no-such-user"}, 33, "-u: user: unknown user no-such-user"},
		{[]string{"-p", "0", "-u", "2000000000"}, 33, "unknown user"},
		{[]string{"-p", "0", "-b", dir + "/nowhere"}, 10, "no such file or directory (the directory must exist and belong to the user that the server runs as)"},
		{[]string{"-p", "0", "-b", file}, 10, "(it must be a directory)"},
		{[]string{"-p", "0", "-b", dir, "--cluster"}, 10, "does not belong to a cluster member"},
	} {
		socket := filepath.Join(dir, "admin.sock")
		p := start(t, append(c.args, "--admin-socket", socket)...)
		<-p.ended
		if _, err := os.Lstat(socket); err == nil {
			t.Errorf("%q: the admin socket was not removed", c.args)
		}
		if p.err == nil || exit.Code(p.err) != c.code || !strings.Contains(p.err.Error(), c.want) {
			t.Errorf("%q: %v, want code %d and %s", c.args, p.err, c.code, c.want)
		}
	}
}
