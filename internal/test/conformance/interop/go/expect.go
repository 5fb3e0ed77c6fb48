package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// expectChecks returns checks of the replies on which clients and tools rely. Each check
// is a conversation on one connection.
func expectChecks(addr string) []check {
	talk := func(lines ...string) func() error {
		return func() error { return converse("tcp", addr, lines...) }
	}
	putA := "put 0 0 60 1\r\na"
	return []check{
		{"ids start at 1 and grow by 1", talk(putA, "INSERTED 1", putA, "INSERTED 2", "delete 2", "DELETED", putA, "INSERTED 3",
			"delete 1", "DELETED", "delete 3", "DELETED")},
		{"the version in stats is N.N", func() error { return statsMatch(addr, "version", `"1\.\d+"`) }},
		{"stats-job has the keys that clients use", func() error {
			return keys(addr, "stats-job 4", "id tube state pri age delay ttr time-left file reserves timeouts releases buries kicks", putA)
		}},
		{"stats-tube has the keys that clients use", func() error {
			return keys(addr, "stats-tube default", `name current-jobs-urgent current-jobs-ready current-jobs-reserved
				current-jobs-delayed current-jobs-buried total-jobs current-using current-watching current-waiting
				cmd-delete cmd-pause-tube pause pause-time-left`)
		}},
		{"strings in stats are quoted (since 1.13)", func() error { return statsMatch(addr, "platform", `".+"`) }},
		{"stats count closed connections", func() error {
			time.Sleep(20 * time.Millisecond) // waits for the connections of earlier checks to end
			before, err := stat(addr, "current-connections")
			for range 5 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return err
				}
				c.Close()
			}
			time.Sleep(20 * time.Millisecond)
			after, err2 := stat(addr, "current-connections")
			return errors.Join(err, err2, equal("connections", after, before))
		}},
		{"equal priorities: the oldest of all watched tubes", talk("delete 4", "DELETED", "use one", "USING one", putA, "INSERTED 5",
			"use two", "USING two", putA, "INSERTED 6", "use one", "USING one", putA, "INSERTED 7",
			"watch two", "WATCHING 2", "watch one", "WATCHING 3",
			"reserve", "RESERVED 5 1", "", "a", "reserve", "RESERVED 6 1", "", "a", "reserve", "RESERVED 7 1", "", "a")},
		{"a pause of 0 resumes at once", talk("watch one", "WATCHING 2", "pause-tube one 100", "PAUSED",
			"reserve-with-timeout 0", "", "pause-tube one 0", "", "", "TIMED_OUT", "", "PAUSED",
			"reserve-with-timeout 0", "RESERVED 5 1", "", "a")},
		{"bad numbers are BAD_FORMAT", talk("delete abc", "BAD_FORMAT", "peek -1", "BAD_FORMAT", "touch 1x", "BAD_FORMAT",
			"release 1 0", "BAD_FORMAT", "stats-job 18446744073709551616", "BAD_FORMAT", "kick x", "BAD_FORMAT")},
		{"a bad timeout is BAD_FORMAT (since 1.13)", talk("reserve-with-timeout abc", "BAD_FORMAT")},
		{"pipelined answers keep their order, even after errors", talk(
			"use x\r\nfoo\r\n"+putA+"\r\npeek 999\r\nlist-tube-used", "USING x", "", "UNKNOWN_COMMAND", "", "INSERTED 8", "", "NOT_FOUND", "", "USING x")},
		{"a ttr of 0 becomes 1", func() error {
			return errors.Join(converse("tcp", addr, "put 0 0 0 1\r\na", "INSERTED 9"), contains(addr, "stats-job 9", "\nttr: 1\n"))
		}},
		{"65535 bytes are accepted, 65536 are swallowed", talk(
			"put 0 0 60 65535\r\n"+strings.Repeat("b", 65535), "INSERTED 10",
			"put 0 0 60 65536\r\n"+strings.Repeat("b", 65536), "JOB_TOO_BIG", "list-tube-used", "USING default")},
		{"time-left is a floor", func() error {
			return errors.Join(converse("tcp", addr, "put 0 10 10 1\r\na", "INSERTED 11"), contains(addr, "stats-job 11", "\ntime-left: 9\n"))
		}},
		{"accepts connections 100 ms after its start", startsQuickly},
		{"replaces a stale unix socket", staleSocket},
		{"SIGUSR1 drains: DRAINING, draining: true, the rest works", drains},
		{"SIGTERM ends the process", terminates},
	}
}

// converse alternately sends a line and expects a reply. An empty line is not sent, and
// an empty reply is not awaited.
func converse(network, addr string, lines ...string) error {
	nc, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(5 * time.Second))
	c := textproto.NewConn(nc)
	for i := 0; i < len(lines); i += 2 {
		if send := lines[i]; send != "" {
			fmt.Fprintf(c.W, "%s\r\n", send)
			if err := c.W.Flush(); err != nil {
				return err
			}
		}
		if want := lines[i+1]; want != "" {
			got, err := c.ReadLine()
			if err != nil {
				return fmt.Errorf("after %.40q: %w", lines[i], err)
			}
			if err := equal(fmt.Sprintf("%.40q", lines[i]), got, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// data sends a command, after other commands whose replies have one line, and returns the
// data of its reply.
func data(addr, command string, before ...string) (string, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	c := textproto.NewConn(nc)
	for _, line := range before {
		fmt.Fprintf(nc, "%s\r\n", line)
		if _, err := c.ReadLine(); err != nil {
			return "", err
		}
	}
	answers, err := pipeline(c, command)
	if err != nil {
		return "", err
	}
	return string(answers[0]), nil
}

func contains(addr, command, want string) error {
	text, err := data(addr, command)
	if err == nil && !strings.Contains(text, want) {
		err = fmt.Errorf("%s: no %q in %q", command, want, text)
	}
	return err
}

func keys(addr, command, want string, before ...string) error {
	text, err := data(addr, command, before...)
	if err != nil {
		return err
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		key, _, _ := strings.Cut(line, ":")
		got = append(got, key)
	}
	return equal("keys", got, strings.Fields(want))
}

func stat(addr, key string) (string, error) {
	text, err := data(addr, "stats")
	_, value, _ := strings.Cut(text, "\n"+key+": ")
	value, _, _ = strings.Cut(value, "\n")
	return value, err
}

func statsMatch(addr, key, pattern string) error {
	value, err := stat(addr, key)
	if err == nil && !regexp.MustCompile("^"+pattern+"$").MatchString(value) {
		err = fmt.Errorf("%s: %s does not match %s", key, value, pattern)
	}
	return err
}

// start starts a beanpole server. The caller must stop its Process.
func start(args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(os.Getenv("SERVER"), args...)
	cmd.Stderr = io.Discard
	return cmd, cmd.Start()
}

func startTCP() (cmd *exec.Cmd, addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	l.Close()
	addr = l.Addr().String()
	cmd, err = start("-l", "127.0.0.1", "-p", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return cmd, addr, err
}

func stop(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func startsQuickly() error {
	cmd, addr, err := startTCP()
	if err != nil {
		return err
	}
	defer stop(cmd)
	time.Sleep(100 * time.Millisecond)
	return converse("tcp", addr, "list-tube-used", "USING default")
}

func staleSocket() error {
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	for range 2 { // the second server finds the files of the first, which was killed
		cmd, err := start("-l", "unix:"+path)
		if err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		err = converse("unix", path, "put 0 0 60 1\r\na", "INSERTED 1")
		stop(cmd)
		if err != nil {
			return err
		}
	}
	return nil
}

func drains() error {
	cmd, addr, err := startTCP()
	if err != nil {
		return err
	}
	defer stop(cmd)
	time.Sleep(200 * time.Millisecond)
	if err := converse("tcp", addr, "put 0 0 60 1\r\na", "INSERTED 1"); err != nil {
		return err
	}
	cmd.Process.Signal(syscall.SIGUSR1)
	for range 200 { // a signal has no reply
		if statsMatch(addr, "draining", "true") == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(statsMatch(addr, "draining", "true"),
		converse("tcp", addr, "put 0 0 60 1\r\na", "DRAINING", "reserve", "RESERVED 1 1", "", "a", "delete 1", "DELETED"))
}

func terminates() error {
	cmd, _, err := startTCP()
	if err != nil {
		return err
	}
	defer stop(cmd)
	time.Sleep(200 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		return nil
	case <-time.After(3 * time.Second):
		return errors.New("still running after 3 seconds")
	}
}
