package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"syscall"
	"testing"
)

// A readyLog is the log of a server. It asks for the admin pages while the server says
// that it is ready, and then stops it.
type readyLog struct {
	t       *testing.T
	address string
	asked   bool
}

var (
	adminLine = regexp.MustCompile(`msg="serving the admin pages" address=(\S+)`)
	readyLine = regexp.MustCompile(`msg=ready `)
)

func (l *readyLog) Write(line []byte) (int, error) {
	if m := adminLine.FindSubmatch(line); m != nil {
		l.address = string(m[1])
	}
	if readyLine.Match(line) {
		l.asked = true
		for _, path := range []string{"/readyz", "/metrics"} {
			resp, err := http.Get("http://" + l.address + path)
			if err != nil {
				l.t.Error(err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				l.t.Errorf("%s of a server that is ready: %s", path, resp.Status)
			}
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			l.t.Error(err)
		}
	}
	return len(line), nil
}

// What reads the log may rely on it: a server that says that it is ready has its pages.
func TestReadyLast(t *testing.T) {
	log := &readyLog{t: t}
	if code := Main([]string{"-p", "0", "--admin", "127.0.0.1:0"}, nil, io.Discard, log); code != 0 || !log.asked {
		t.Errorf("ended with %d, ready: %v", code, log.asked)
	}
}
