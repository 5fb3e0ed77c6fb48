package interop

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// life contains the commands of the first job's life.
const (
	life        = "put 0 0 60 5\r\nhello\r\nreserve-with-timeout 0\r\ndelete 1\r\nquit\r\n"
	lifeReplies = "INSERTED 1\r\nRESERVED 1 5\r\nhello\r\nDELETED\r\n"
)

// A pki contains certificates of all kinds.
type pki struct {
	trusted, stranger     *localca.CA
	serverCert, serverKey string
}

func newPKI(t *testing.T) *pki {
	p := &pki{trusted: localca.New(t), stranger: localca.New(t)}
	p.serverCert, p.serverKey = p.trusted.Issue("server", time.Now().Add(time.Hour))
	return p
}

// listener is a listener with TLS, in the configuration.
func (p *pki) listener(settings ...string) string {
	return fmt.Sprintf("[[listener]]\naddress = \"127.0.0.1:0\"\ntls-cert = %q\ntls-key = %q\n%s\n", p.serverCert, p.serverKey, strings.Join(settings, "\n"))
}

// Each client connects with the required credentials, and is refused without them, in
// both TLS versions that the server supports and in no other version.
func TestTLS(t *testing.T) {
	p := newPKI(t)
	noCert := side{ca: p.trusted.File}
	with := func(ca *localca.CA, name string, lifetime time.Duration) side {
		s := noCert
		s.cert, s.key = ca.Issue(name, time.Now().Add(lifetime))
		return s
	}
	worker := with(p.trusted, "worker", time.Hour)
	nobody := with(p.trusted, "nobody", time.Hour)
	expired := with(p.trusted, "late", -time.Minute)
	foreign := with(p.stranger, "worker", time.Hour)
	mistrusting := side{ca: p.stranger.File}

	clientCA := fmt.Sprintf("tls-client-ca = %q", p.trusted.File)
	identity := "require-auth = true\n[[identity]]\nname = \"worker\"\ncertificates = [\"worker\"]\n"
	old := newPKI(t)
	old.serverCert, old.serverKey = p.trusted.Issue("old server", time.Now().Add(-time.Minute))
	token := fmt.Sprintf("require-auth = true\n[[identity]]\nname = \"mailer\"\ntokens = [%q]\n", tokenHash)

	const both = "1.2 1.3"
	for name, test := range map[string]struct {
		versions string
		config   string
		side     side
		text     string
		replies  string
		reason   string // part of the server's log; can be empty
	}{
		"too old":                              {"1.1", p.listener(), noCert, life, "", "client offered only unsupported versions"},
		"encrypted":                            {both, p.listener(), noCert, life, lifeReplies, ""},
		"a certificate":                        {both, p.listener(clientCA), worker, life, lifeReplies, ""},
		"no certificate":                       {both, p.listener(clientCA), noCert, life, "", "client didn't provide a certificate"},
		"an expired certificate":               {both, p.listener(clientCA), expired, life, "", "certificate has expired"},
		"a certificate of a stranger":          {both, p.listener(clientCA), foreign, life, "", "signed by unknown authority"},
		"a certificate with an identity":       {both, p.listener(clientCA, identity), worker, life, lifeReplies, ""},
		"a certificate without an identity":    {both, p.listener(clientCA, identity), nobody, life, "UNAUTHORIZED\r\n", "put before auth"},
		"a token":                              {both, p.listener(token), noCert, "auth " + token1 + "\r\n" + life, "AUTHENTICATED\r\n" + lifeReplies, ""},
		"a wrong token":                        {both, p.listener(token), noCert, "auth " + token1 + "x\r\n" + life, "UNAUTHORIZED\r\n", "the token"},
		"a server with an expired certificate": {both, old.listener(), noCert, life, "", ""},
		"a server of a stranger":               {both, p.listener(), mistrusting, life, "", ""},
	} {
		for version := range strings.FieldsSeq(test.versions) {
			test.side.version = version
			for language, c := range clients {
				t.Run(name+"/"+version+"/"+language, func(t *testing.T) {
					t.Parallel()
					need(t, c.program)
					s := serve(t, test.config)
					got, err := c.talk(t, s.addrs[0], test.text, test.side)
					if got != test.replies {
						t.Errorf("the replies are %q, want %q (%v)", got, test.replies, err)
					}
					if test.reason != "" {
						if _, err := s.log.Await("refused.*" + regexp.QuoteMeta(test.reason)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

// The server disconnects a client that requests a renegotiation, and serves a client that
// updates its keys in TLS 1.3. Other clients are not affected.
func TestRenegotiation(t *testing.T) {
	need(t, "openssl")
	p := newPKI(t)
	s := serve(t, p.listener())
	for version, test := range map[string]struct {
		ask, said, also string
	}{
		"1.2": {"R\n", "RENEGOTIATING", "unexpected message"},
		"1.3": {"K\n", "KEYUPDATE", "USING default"},
	} {
		cmd := exec.CommandContext(t.Context(), "openssl", sClient(s.addrs[0], side{ca: p.trusted.File, version: version}, "-crlf")...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := exectest.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		await := func(expr string) {
			if _, err := p.Await(expr); err != nil {
				t.Fatal(err)
			}
		}
		io.WriteString(stdin, "list-tube-used\n")
		await("USING default")
		io.WriteString(stdin, test.ask) // a command for s_client
		await(test.said)
		io.WriteString(stdin, "list-tube-used\nquit\n")
		await("(?s)" + test.said + ".*" + test.also)
		stdin.Close()
		<-p.Exited
		if n := strings.Count(p.Log.String(), "USING default"); n != map[string]int{"1.2": 1, "1.3": 2}[version] {
			t.Errorf("TLS %s: %d answers:\n%s", version, n, &p.Log)
		}
	}
	if got, err := goTLS(t, s.addrs[0], life, side{ca: p.trusted.File, version: "1.3"}); got != lifeReplies {
		t.Errorf("another client: %q (%v)", got, err)
	}
}
