package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

type process struct {
	*exectest.Process
	states chan string // the server's notifications to the service manager
}

// awaitState waits until the server notifies the service manager of this state.
func (p *process) awaitState(state string) error {
	select {
	case got := <-p.states:
		if got != state {
			return fmt.Errorf("the server notifies %q, want %q", got, state)
		}
		return nil
	case <-p.Exited:
		return fmt.Errorf("the server has exited: %v", p.Cmd.ProcessState)
	case <-time.After(patience):
		return fmt.Errorf("the server does not notify %q", state)
	}
}

var addressRE = regexp.MustCompile(`listening"?,?"?\s?"?address"?[=:]"?([^"\s}]+)`)

func scriptServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: server NAME [-fds N] [VAR=VALUE...] [ARG...]")
	}
	name, args := args[0], args[1:]
	p := &process{states: make(chan string, 8)}
	cmd := newCommand(ts, "beanpole")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+serviceManager(ts, p))
	if len(args) > 1 && args[0] == "-fds" {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		files, _ := sockets(ts, n)
		inherit(cmd, files)
		args = args[2:]
	}
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && strings.Contains(args[0], "=") {
		cmd.Env = append(cmd.Env, args[0])
		args = args[1:]
	}
	p.start(ts, name, cmd, args)

	err := p.awaitState("READY=1")
	if err == nil {
		_, err = p.Await(`\bready\b`)
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
	text := p.Log.String()
	for i, m := range addressRE.FindAllStringSubmatch(text, -1) {
		variable := name + "_addr"
		if i > 0 {
			variable += strconv.Itoa(i + 1)
		}
		ts.Setenv(variable, m[1])
	}
	if m := adminAddress.FindStringSubmatch(text); m != nil {
		ts.Setenv(name+"_admin", m[1])
	}
}

// newCommand returns a command whose program can inherit sockets.
func newCommand(ts *testscript.TestScript, program string) *exec.Cmd {
	// LISTEN_PID must be the process that uses the sockets, so a shell sets it.
	cmd := exec.Command("sh", "-c", `[ -z "$LISTEN_FDS" ] || export LISTEN_PID=$$; exec "$0" "$@"`, program)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	return cmd
}

// environment returns the environment of a program whose local sockets are in the
// directory of the script.
func environment(ts *testscript.TestScript) []string {
	return append(os.Environ(), "XDG_RUNTIME_DIR="+ts.Getenv("XDG_RUNTIME_DIR"))
}

// inherit passes sockets to the process as systemd does.
func inherit(cmd *exec.Cmd, files []*os.File) {
	cmd.ExtraFiles = files
	cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(files)))
}

func (p *process) start(ts *testscript.TestScript, name string, cmd *exec.Cmd, args []string) {
	cmd.Args = append(cmd.Args, args...)
	var err error
	p.Process, err = exectest.Start(cmd)
	ts.Check(err)
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	ts.Defer(func() {
		p.Kill() // the process might have exited already
		ts.Logf("[log of %s]\n%s", name, &p.Log)
	})
	servers(ts)[name] = p
	ts.Setenv(name+"_pid", strconv.Itoa(cmd.Process.Pid))
}

// serviceManager returns the path of a socket for notifications to p.states.
func serviceManager(ts *testscript.TestScript, p *process) string {
	dir, err := os.MkdirTemp("", "")
	ts.Check(err)
	path := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	ts.Check(err)
	ts.Check(os.Chmod(dir, 0o755)) // for a server that has switched to another user
	ts.Check(os.Chmod(path, 0o777))
	ts.Defer(func() {
		l.Close()
		os.RemoveAll(dir)
	})
	go func() {
		buf := make([]byte, 512)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			p.states <- string(buf[:n])
		}
	}()
	return path
}

func sockets(ts *testscript.TestScript, n int) (files []*os.File, addrs []string) {
	for range n {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		ts.Check(err)
		f, err := l.File()
		ts.Check(err)
		l.Close()
		files, addrs = append(files, f), append(addrs, l.Addr().String())
	}
	return files, addrs
}

func servers(ts *testscript.TestScript) map[string]*process {
	return ts.Value("servers").(map[string]*process)
}

func running(ts *testscript.TestScript, neg bool, args []string, want int) *process {
	if neg || len(args) != want {
		ts.Fatalf("want %d arguments and no negation", want)
	}
	p := servers(ts)[args[0]]
	if p == nil {
		ts.Fatalf("no server is called %s", args[0])
	}
	return p
}

func dial(ts *testscript.TestScript, neg bool, args []string) net.Conn {
	if neg || len(args) < 1 {
		ts.Fatalf("want an address and lines")
	}
	network, addr := "tcp", args[0]
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", ts.MkAbs(path)
	}
	nc, err := net.Dial(network, addr)
	ts.Check(err)
	ts.Defer(func() { nc.Close() })
	ts.Check(nc.SetDeadline(time.Now().Add(patience)))
	for _, line := range args[1:] {
		_, err := io.WriteString(nc, line+"\r\n")
		ts.Check(err)
	}
	return nc
}

func scriptTalk(ts *testscript.TestScript, neg bool, args []string) {
	nc := dial(ts, neg, append(args, "quit"))
	replies, err := io.ReadAll(nc)
	ts.Check(err)
	nc.Close() // otherwise a stopping server waits for it
	ts.Stdout().Write(bytes.ReplaceAll(replies, []byte("\r\n"), []byte("\n")))
}

func scriptWorker(ts *testscript.TestScript, neg bool, args []string) {
	dial(ts, neg, args)
}

func scriptFlood(ts *testscript.TestScript, neg bool, args []string) {
	const size = 32 << 20 // more than the buffers of two sockets
	nc := dial(ts, neg, append(args, fmt.Sprintf("put 0 0 60 %d", size), strings.Repeat("x", size), "peek-ready"))
	// When the reply has started, the server has executed the command, but cannot
	// complete the reply.
	ts.Check(expect(nc, "INSERTED 1\r\nFOUND 1 "))
}

// expect reads bytes and compares them.
func expect(r io.Reader, want string) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		return fmt.Errorf("read %q, %v; want %q", got, err, want)
	}
	return nil
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	p := running(ts, neg, args, 2)
	sig, ok := map[string]os.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "KILL": syscall.SIGKILL,
	}[args[1]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[1])
	}
	ts.Check(p.Cmd.Process.Signal(sig))
}

func scriptLogs(ts *testscript.TestScript, neg bool, args []string) {
	p := running(ts, false, args, 2)
	re, err := regexp.Compile(`(?m)` + args[1])
	ts.Check(err)
	if !neg {
		_, err := p.Await(re.String())
		ts.Check(err)
	} else if text := p.Log.String(); re.MatchString(text) {
		ts.Fatalf("the server logged %q", re.FindString(text))
	}
}

func (p *process) awaitExit(ts *testscript.TestScript) *os.ProcessState {
	p.Wait()
	return p.Cmd.ProcessState
}

func scriptExited(ts *testscript.TestScript, neg bool, args []string) {
	p := running(ts, neg, args, 2)
	if state := p.awaitExit(ts); strconv.Itoa(state.ExitCode()) != args[1] {
		ts.Fatalf("the server exited with %v, want exit code %s", state, args[1])
	}
	select {
	case state := <-p.states:
		if state != "STOPPING=1" {
			ts.Fatalf("the server notified %q before it exited, want STOPPING=1", state)
		}
	case <-time.After(patience):
		ts.Fatalf("the server did not notify that it stops")
	}
}

func scriptKilled(ts *testscript.TestScript, neg bool, args []string) {
	p := running(ts, neg, args, 1)
	if state := p.awaitExit(ts); state.Exited() {
		ts.Fatalf("the server exited with %v, want a signal", state)
	}
}
