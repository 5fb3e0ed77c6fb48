package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	crashRounds = flag.Int("crash.rounds", 8, "how often TestCrash kills the server, for each set of options")
	crashSeed   = flag.Uint64("crash.seed", 1, "seed of what the clients of TestCrash do")
)

// A server is killed while producers and workers are at it, again and again on
// the same journal. Whatever they were told is so: each job that was put is
// there, with its body; none that was deleted is; no id is given out twice.
func TestCrash(t *testing.T) {
	for name, args := range map[string][]string{
		"synced before the reply": {"-s", "20000"},
		"synced in between":       {"-s", "20000", "-f", "50"},
		"large segments":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-l", "127.0.0.1:0", "-b", t.TempDir()}, args...)
			a := &crashAccount{t: t, jobs: make(map[uint64]*crashJob)}
			rng := rand.New(rand.NewPCG(*crashSeed, 0))
			for round := range *crashRounds {
				p, addr := startForCrash(t, args)
				a.audit(addr)
				a.work(addr, rng.Uint64(), func() {
					time.Sleep(time.Duration(100+rng.IntN(400)) * time.Millisecond)
					p.cmd.Process.Kill()
					<-p.exited
				})
				if t.Failed() {
					text, _ := p.logged()
					t.Fatalf("in round %d; the server's log:\n%s", round, text)
				}
			}
			p, addr := startForCrash(t, args)
			a.audit(addr)
			p.cmd.Process.Kill()
			t.Logf("%d kills: %d jobs put, %d of them deleted, %d cut short", *crashRounds, a.puts, a.deletes, a.unsure)
		})
	}
}

var crashReady = regexp.MustCompile(`listening address=(\S+)`)

// startForCrash starts a server and returns its address.
func startForCrash(t *testing.T, args []string) (*process, string) {
	t.Helper()
	p := &process{cmd: exec.Command("beanpole", args...), exited: make(chan struct{}), progress: make(chan struct{})}
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
	if err := p.await(crashReady); err != nil {
		text, _ := p.logged()
		t.Fatalf("%v:\n%s", err, text)
	}
	text, _ := p.logged()
	return p, crashReady.FindStringSubmatch(text)[1]
}

// A crashAccount is what the clients were told.
type crashAccount struct {
	t *testing.T

	mu      sync.Mutex
	jobs    map[uint64]*crashJob // by id: all that anybody was ever told of
	puts    int
	deletes int
	unsure  int // deletes that were asked for and not answered
}

type crashJob struct {
	body    string
	asked   bool // somebody has asked for the deletion
	deleted bool // and was told that it is done
}

// audit looks for every job in a server that was just started.
func (a *crashAccount) audit(addr string) {
	a.t.Helper()
	c, err := a.dial(addr)
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.nc.Close()
	for id, j := range a.jobs {
		words, body, err := c.ask(fmt.Sprintf("peek %d\r\n", id))
		if err != nil {
			a.t.Fatal(err)
		}
		switch found := words[0] == "FOUND"; {
		case found && j.deleted:
			a.t.Errorf("job %d was deleted and is back", id)
		case found && body != j.body:
			a.t.Errorf("job %d has body %.40q, was put with %.40q", id, body, j.body)
		case !found && !j.asked:
			a.t.Errorf("job %d is lost", id)
		case !found && !j.deleted:
			a.unsure++
			j.deleted = true
		case found:
			j.asked = false
		}
	}
}

// work lets producers and workers work until the server is killed.
func (a *crashAccount) work(addr string, seed uint64, kill func()) {
	var wg sync.WaitGroup
	for i := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, i))
		c, err := a.dial(addr)
		if err != nil {
			a.t.Fatal(err)
		}
		does := c.consume
		if i%3 == 0 {
			does = c.produce
		}
		wg.Go(func() {
			defer c.nc.Close()
			for n := 0; ; n++ {
				if err := does(rng, n); err != nil {
					if errors.Is(err, errCrashAnswer) {
						a.t.Error(err)
					}
					return
				}
			}
		})
	}
	kill()
	wg.Wait()
}

// A crashClient is one connection.
type crashClient struct {
	*crashAccount
	nc net.Conn
	in *bufio.Reader
}

func (a *crashAccount) dial(addr string) (*crashClient, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &crashClient{a, nc, bufio.NewReader(nc)}, nil
}

var errCrashAnswer = errors.New("unexpected answer")

// ask sends a command and reads the answer, with its body if it has one.
func (c *crashClient) ask(command string) (words []string, body string, err error) {
	if _, err := io.WriteString(c.nc, command); err != nil {
		return nil, "", err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, "", err
	}
	words = strings.Fields(line)
	switch words[0] {
	case "FOUND", "RESERVED":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, "", err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, b); err != nil {
			return nil, "", err
		}
		body = string(b[:n])
	case "INTERNAL_ERROR", "OUT_OF_MEMORY", "BAD_FORMAT", "UNKNOWN_COMMAND":
		err = fmt.Errorf("%w: %q to %.40q", errCrashAnswer, line, command)
	}
	return words, body, err
}

// produce puts a job.
func (c *crashClient) produce(rng *rand.Rand, n int) error {
	body := fmt.Sprintf("%d %x ", n, rng.Uint64()) + strings.Repeat("-", rng.IntN(400))
	words, _, err := c.ask(fmt.Sprintf("put %d %d 60 %d\r\n%s\r\n", rng.IntN(5), rng.IntN(20)/19, len(body), body))
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %v", errCrashAnswer, words)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch other := c.jobs[id]; {
	case other == nil:
		c.jobs[id] = &crashJob{body: body}
	case other.body != body:
		return fmt.Errorf("%w: id %d is given out twice", errCrashAnswer, id)
	}
	c.puts++
	return nil
}

// consume takes a job and mostly deletes it.
func (c *crashClient) consume(rng *rand.Rand, n int) error {
	words, body, err := c.ask("reserve-with-timeout 1\r\n")
	if err != nil || words[0] != "RESERVED" {
		return err
	}
	id := words[1]
	switch rng.IntN(10) {
	case 0:
		_, _, err = c.ask("release " + id + " 1000 0\r\n")
		return err
	case 1:
		_, _, err = c.ask("bury " + id + " 0\r\n")
		if err == nil && n%3 == 0 {
			_, _, err = c.ask("kick 3\r\n")
		}
		return err
	}
	return c.delete(id, body)
}

// delete deletes a job.
func (c *crashClient) delete(id, body string) error {
	j, err := c.deleting(id, body)
	if err != nil {
		return err
	}
	words, _, err := c.ask("delete " + id + "\r\n")
	if err != nil {
		return err
	}
	if words[0] != "DELETED" {
		return fmt.Errorf("%w: %v to the delete of a job that is held", errCrashAnswer, words)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j.deleted = true
	c.deletes++
	return nil
}

// deleting notes that a job is about to be deleted.
func (c *crashClient) deleting(id, body string) (*crashJob, error) {
	number, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: id %q", errCrashAnswer, id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[number]
	switch {
	case j == nil: // its producer has not heard of it yet, or never will
		j = &crashJob{body: body}
		c.jobs[number] = j
	case j.deleted:
		return nil, fmt.Errorf("%w: job %s was deleted and is reserved", errCrashAnswer, id)
	case j.body != body:
		return nil, fmt.Errorf("%w: job %s has body %.40q, not %.40q", errCrashAnswer, id, body, j.body)
	}
	j.asked = true
	return j, nil
}
