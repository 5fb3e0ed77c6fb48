package daemon

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
)

// The warnings name certificates that expire soon, or have expired.
func TestCertificateWarnings(t *testing.T) {
	begin := time.Unix(1e9, 0)
	day := 24 * time.Hour
	all := []certs.Expiry{
		{File: "quarter.crt", Begin: begin, End: begin.Add(90 * day)},
		{File: "week.crt", Begin: begin.Add(80 * day), End: begin.Add(87 * day)},
	}
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{75 * day, nil},
		{77 * day, []string{"quarter.crt expires soon, on 2001-12-08"}},
		{86 * day, []string{"quarter.crt expires soon", "week.crt expires soon"}},
		{87 * day, []string{"quarter.crt expires soon", "week.crt expired"}},
		{90 * day, []string{"quarter.crt expired", "week.crt expired"}},
	} {
		got := certificateWarnings(all, begin.Add(step.after))
		if !slices.EqualFunc(got, step.want, strings.Contains) {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}

// Listeners that share a certificate report it once, even if one of them could not load
// the new certificate.
func TestSharedCertificate(t *testing.T) {
	ca := localca.New(t)
	soon := time.Now().Add(90 * 24 * time.Hour)
	cert, key := ca.Issue("server", soon)
	s := &security{certs: make(map[certs.Files]*certs.Source)}
	for _, f := range []certs.Files{{Cert: cert, Key: key}, {Cert: cert, Key: key, ClientCA: ca.File}} {
		source, err := certs.Load(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.certs[f] = source
	}
	if got := s.certificateWarnings(); got != nil {
		t.Errorf("%q", got)
	}
	ca.Issue("server", soon.Add(time.Hour))
	if err := os.WriteFile(ca.File, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if all := s.expiries(); len(all) != 1 || all[0].End.Unix() != soon.Unix() {
		t.Errorf("%+v, want the earlier end %v", all, soon)
	}
	if got := s.certificateWarnings(); len(got) != 1 || !strings.Contains(got[0], "cannot use a new certificate; keeping the previous one: authorities of clients: no certificate in ") {
		t.Errorf("%q", got)
	}
}
