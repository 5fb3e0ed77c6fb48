package config

import (
	"bytes"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// User and group ids are logged by name, and journald gets priorities instead of times.
func TestLogger(t *testing.T) {
	for _, c := range []struct {
		args     []string
		journald bool
		want     string
	}{
		{nil, false, `^time=\S+ level=WARN msg=m verb=put client=10.0.0.1 n=1\ntime=\S+ level=ERROR msg=e x=y\n$`},
		{nil, true, `^<4>time=\S+ level=WARN msg=m verb=put client=10.0.0.1 n=1\n<3>time=\S+ level=ERROR msg=e x=y\n$`},
		{[]string{"-V"}, true, `^<7>time=\S+ level=DEBUG msg=d\n<6>time=\S+ level=INFO msg=i\n<4>`},
		{[]string{"--log-format", "json"}, false, `^\{"time":"\S+","level":"WARN","msg":"m","verb":"put","client":"10.0.0.1","n":1\}\n\{`},
		{[]string{"--log-format", "json"}, true, `^<4>\{"time":"\S+","level":"WARN","msg":"m","verb":"put"`},
	} {
		s, err := read(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log, _ := s.Options.Logger(&out, c.journald)
		log.Debug("d")
		if s.Options.Verbose > 0 {
			log.Info("i")
		}
		log.Warn("m", "verb", wire.Put, "client", &net.IPAddr{IP: net.IPv4(10, 0, 0, 1)}, "n", 1)
		log.With("x", "y").Error("e")
		if !regexp.MustCompile(c.want).MatchString(out.String()) {
			t.Errorf("%v, journald %v:\n%s\nwant %s", c.args, c.journald, &out, c.want)
		}
	}
}

// Options that have no effect are reported.
func TestNotices(t *testing.T) {
	s, err := read(t, "-c", "-n", "-s", "1", "-z", "5000000000")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, _ := s.Options.Logger(&out, true)
	s.Options.LogNotices(log)
	for _, want := range []string{"options -c and -n have no effect", "option -s is out of range; using the nearest size\" asked=1 bytes=512", "option -z is too large: the largest job is smaller"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", &out, want)
		}
	}
}
