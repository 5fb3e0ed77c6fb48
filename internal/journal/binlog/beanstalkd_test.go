package binlog

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// A beanstalkd is a process of the real server on a log directory, and a
// connection to it.
type beanstalkd struct {
	tb testing.TB
	*exectest.Process
	conn net.Conn
	in   *bufio.Reader
}

// startBeanstalkd starts the server, or skips the test where there is none.
func startBeanstalkd(tb testing.TB, dir string, args ...string) *beanstalkd {
	tb.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		tb.Skip("there is no beanstalkd here")
	}
	// Not tb.TempDir: the path of a socket may have about 100 bytes.
	sockets, err := os.MkdirTemp("", "binlog")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "s")

	b := &beanstalkd{tb: tb}
	if b.Process, err = exectest.Start(exec.Command(path, append([]string{"-l", "unix:" + socket, "-b", dir}, args...)...)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.kill)
	for {
		if b.conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		select {
		case <-b.Exited:
			tb.Fatalf("beanstalkd exited: %v\n%s", b.Cmd.ProcessState, &b.Log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	b.in = bufio.NewReader(b.conn)
	b.do("list-tubes-watched") // an answer means that it has replayed its log
	return b
}

// kill is kill -9. It returns when the process is gone.
func (b *beanstalkd) kill() {
	b.Kill()
	if b.conn != nil {
		b.conn.Close()
	}
}

// do sends a command and returns the line of the reply and the body, if it has
// one: the bytes whose number ends the line.
func (b *beanstalkd) do(format string, args ...any) (line string, body []byte) {
	b.tb.Helper()
	b.conn.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs should say where
	if _, err := fmt.Fprintf(b.conn, format+"\r\n", args...); err != nil {
		b.tb.Fatal(err)
	}
	line, err := b.in.ReadString('\n')
	if err != nil {
		b.tb.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "OK", "FOUND", "RESERVED":
		n, err := strconv.Atoi(rest[strings.LastIndexByte(rest, ' ')+1:])
		if err != nil {
			b.tb.Fatal(err)
		}
		body = make([]byte, n+2)
		if _, err := io.ReadFull(b.in, body); err != nil {
			b.tb.Fatal(err)
		}
		body = body[:n]
	}
	return line, body
}

// must is do for a command whose reply begins with want.
func (b *beanstalkd) must(want, format string, args ...any) []byte {
	b.tb.Helper()
	line, body := b.do(format, args...)
	if !strings.HasPrefix(line, want) {
		b.tb.Fatalf("%.60s: %s, want %s", fmt.Sprintf(format, args...), line, want)
	}
	return body
}

// put puts a job into a tube and returns its id.
func (b *beanstalkd) put(tube string, pri, delay, ttr uint32, body []byte) uint64 {
	b.tb.Helper()
	b.must("USING", "use %s", tube)
	line, _ := b.do("put %d %d %d %d\r\n%s", pri, delay, ttr, len(body), body)
	var id uint64
	if _, err := fmt.Sscanf(line, "INSERTED %d", &id); err != nil {
		b.tb.Fatalf("put: %s", line)
	}
	return id
}

// A told job is what stats-job and peek say. Times are seconds.
type told struct {
	id                                          uint64
	tube, state, body                           string
	pri, delay, ttr                             uint32
	reserves, timeouts, releases, buries, kicks uint32
	age, left                                   int64
}

// job asks for a job; ok is false if there is none.
func (b *beanstalkd) job(id uint64) (j told, ok bool) {
	b.tb.Helper()
	line, yaml := b.do("stats-job %d", id)
	if line == "NOT_FOUND" {
		return told{}, false
	}
	values := parse(yaml)
	number := func(key string) int64 {
		n, err := strconv.ParseInt(values[key], 10, 64)
		if err != nil {
			b.tb.Fatalf("stats-job %d: %s: %v", id, key, err)
		}
		return n
	}
	small := func(key string) uint32 { return uint32(number(key)) }
	j = told{
		id: id, tube: values["tube"], state: values["state"],
		pri: small("pri"), delay: small("delay"), ttr: small("ttr"),
		reserves: small("reserves"), timeouts: small("timeouts"), releases: small("releases"),
		buries: small("buries"), kicks: small("kicks"),
		age: number("age"), left: number("time-left"),
	}
	j.body = string(b.must("FOUND", "peek %d", id))
	return j, true
}

// stat asks for a number of the server's stats.
func (b *beanstalkd) stat(key string) int {
	b.tb.Helper()
	n, err := strconv.Atoi(parse(b.must("OK", "stats"))[key])
	if err != nil {
		b.tb.Fatalf("stats: %s: %v", key, err)
	}
	return n
}

// total asks how many jobs there are.
func (b *beanstalkd) total() int {
	b.tb.Helper()
	n := 0
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		n += b.stat("current-jobs-" + state)
	}
	return n
}

// parse parses the dictionaries that beanstalkd sends.
func parse(yaml []byte) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(string(yaml)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			values[key] = strings.Trim(value, `"`)
		}
	}
	return values
}

// kickAll kicks the buried jobs of a tube one by one and returns their order.
func (b *beanstalkd) kickAll(tube string) (order []uint64) {
	b.tb.Helper()
	b.must("USING", "use %s", tube)
	for {
		line, _ := b.do("peek-buried")
		if line == "NOT_FOUND" {
			return order
		}
		var id uint64
		fmt.Sscanf(line, "FOUND %d", &id)
		b.must("KICKED 1", "kick 1")
		order = append(order, id)
	}
}
