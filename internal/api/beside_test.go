package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// BenchmarkBeside measures other clients while a million jobs are listed, cleared, moved
// or kicked, each by a server of its own in another process; run it with -benchtime 1x.
// p99-ms and max-ms are of the others' commands, s is how long the operation took. The
// server is without and with a journal. Of beanstalkd there is what it can do.
func BenchmarkBeside(b *testing.B) {
	long := func(path, body string) func(*testing.B, backend) {
		return func(b *testing.B, s backend) { s.post(b, path, body) }
	}
	for _, x := range []struct {
		name string
		do   func(*testing.B, backend)
	}{
		{"nothing", func(*testing.B, backend) { time.Sleep(2 * time.Second) }},
		{"list", func(b *testing.B, s backend) { s.listAll(b, "delayed") }},
		{"clear", long("/tubes/many/tasks?wait=60", `{"do":"delete","state":"delayed"}`)},
		{"move", long("/tubes/many/tasks?wait=60", `{"do":"move","state":"delayed","to":"other"}`)},
		{"kick", long("/tubes/many/tasks?wait=60", `{"do":"kick","state":"delayed"}`)},
	} {
		for _, log := range []string{"none", "fsync"} {
			b.Run("do="+x.name+"/journal="+log, func(b *testing.B) {
				for b.Loop() {
					dir := ""
					if log != "none" {
						dir = b.TempDir()
					}
					measure(b, startBackend(b, dir), x.do)
				}
			})
		}
	}
	for name, do := range map[string]func(*testing.B, backend){
		"nothing": func(*testing.B, backend) { time.Sleep(2 * time.Second) },
		"kick":    func(b *testing.B, s backend) { s.kick(b) },
	} {
		b.Run("do="+name+"/beanstalkd", func(b *testing.B) {
			for b.Loop() {
				measure(b, startBeanstalkd(b), do)
			}
		})
	}
}

const (
	manyJobs  = 1_000_000
	observers = 8

	// pace is how often an observer would send a command, if it did not have to wait:
	// a standstill weighs as much as it lasts.
	pace = 100 * time.Microsecond
)

// measure fills a tube, and does something with it while others use other tubes.
func measure(b *testing.B, s backend, do func(*testing.B, backend)) {
	b.StopTimer()
	defer b.StartTimer()
	s.fill(b)
	var stop atomic.Bool
	var all sync.WaitGroup
	hists := make([]*hdrhistogram.Histogram, observers)
	for i := range hists {
		hists[i] = hdrhistogram.New(1, int64(time.Minute), 3)
		all.Go(func() { s.observe(b, fmt.Sprintf("observer-%d", i), hists[i], &stop) })
	}
	start := time.Now()
	do(b, s)
	took := time.Since(start)
	stop.Store(true)
	all.Wait()
	for _, h := range hists[1:] {
		hists[0].Merge(h)
	}
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(float64(hists[0].ValueAtQuantile(99))/1e6, "p99-ms")
	b.ReportMetric(float64(hists[0].Max())/1e6, "max-ms")
	b.ReportMetric(0, "ns/op")
}

// A backend is a server in another process.
type backend struct{ addr, admin string }

// startBackend starts this test as a server, with a journal in a directory if that is
// given, until the benchmark ends.
func startBackend(b *testing.B, dir string) backend {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), backendEnv+"="+dir+";")
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	var s backend
	if _, err := fmt.Fscanln(out, &s.addr, &s.admin); err != nil {
		b.Fatal(err)
	}
	return s
}

func startBeanstalkd(b *testing.B) backend {
	b.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		b.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := backend{addr: l.Addr().String()}
	l.Close()
	host, port, _ := net.SplitHostPort(s.addr)
	cmd := exec.Command(path, "-l", host, "-p", port)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 100 {
		if nc, err := net.Dial("tcp", s.addr); err == nil {
			nc.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatal("beanstalkd does not answer")
	return s
}

// backendEnv makes this test a server: the directory of the journal, if any, and ";".
const backendEnv = "BEANPOLE_API_BACKEND"

func TestMain(m *testing.M) {
	if dir, ok := strings.CutSuffix(os.Getenv(backendEnv), ";"); ok {
		if err := serveBackend(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveBackend is a server that says where it is, until its standard input ends.
func serveBackend(dir string) error {
	eopt, bopt := engine.Options{}, broker.Options{}
	eng := engine.New(eopt)
	if dir != "" {
		j := journal.New(journal.Options{})
		eng = engine.New(engine.Options{Logged: true, Admit: j.Admit})
		if _, err := j.Open(vfs.OS, dir, eng); err != nil {
			return err
		}
		bopt.Log = j
	}
	br := broker.New(eng, bopt)
	srv := server.New(br, server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go srv.Serve(l)
	go http.Serve(admin, New(br, Options{Server: srv}))
	fmt.Println(l.Addr(), admin.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// fill puts the jobs, which are delayed, many at a time.
func (s backend) fill(b *testing.B) {
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	const batch = 1000
	commands := bytes.Repeat([]byte("put 5 86400 60 64\r\n"+strings.Repeat("x", 64)+"\r\n"), batch)
	replies := bufio.NewReader(nc)
	io.WriteString(nc, "use many\r\n")
	replies.ReadSlice('\n')
	for range manyJobs / batch {
		go nc.Write(commands)
		for range batch {
			if line, err := replies.ReadSlice('\n'); err != nil || !bytes.HasPrefix(line, []byte("INSERTED")) {
				b.Fatalf("%s %v", line, err)
			}
		}
	}
}

// observe puts, reserves and deletes jobs of its own until it is told to stop.
func (s backend) observe(b *testing.B, tube string, h *hdrhistogram.Histogram, stop *atomic.Bool) {
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer nc.Close()
	r := bufio.NewReader(nc)
	do := func(command string, lines int) (first string) {
		start := time.Now()
		if _, err := io.WriteString(nc, command+"\r\n"); err != nil {
			b.Error(err)
		}
		for i := range lines {
			line, err := r.ReadString('\n')
			if err != nil {
				b.Error(err)
				stop.Store(true)
			}
			if i == 0 {
				first = line
			}
		}
		h.RecordCorrectedValue(int64(time.Since(start)), int64(pace))
		return first
	}
	do("use "+tube, 1)
	do("watch "+tube, 1)
	do("ignore default", 1)
	for !stop.Load() {
		id := strings.Fields(do("put 0 0 60 5\r\nhello", 1))[1]
		do("reserve", 2)
		do("delete "+id, 1)
	}
}

func (s backend) post(b *testing.B, path, body string) {
	resp, err := http.Post("http://"+s.admin+Prefix+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(answer), fmt.Sprint(manyJobs)) {
		b.Fatalf("%s: %d %s %v", path, resp.StatusCode, answer, err)
	}
}

// listAll goes through all pages.
func (s backend) listAll(b *testing.B, state string) {
	seen, cursor := 0, ""
	for {
		resp, err := http.Get(fmt.Sprintf("http://%s%s/tubes/many/jobs?state=%s&limit=%d&cursor=%s", s.admin, Prefix, state, 1000, url.QueryEscape(cursor)))
		if err != nil {
			b.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body) // and no more: the observers need the processor
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%d %v", resp.StatusCode, err)
		}
		seen += bytes.Count(page, []byte(`{"id":`))
		_, next, _ := bytes.Cut(page, []byte(`"next":"`))
		next, _, _ = bytes.Cut(next, []byte(`"`))
		if cursor = string(next); cursor == "" {
			break
		}
	}
	if seen != manyJobs {
		b.Fatalf("%d jobs were listed", seen)
	}
}

// kick kicks all jobs with the command of the protocol.
func (s backend) kick(b *testing.B) {
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, fmt.Sprintf("use many\r\nkick %d\r\nquit\r\n", manyJobs))
	answer, err := io.ReadAll(nc)
	if err != nil || !strings.Contains(string(answer), fmt.Sprintf("KICKED %d", manyJobs)) {
		b.Fatalf("%s %v", answer, err)
	}
}
