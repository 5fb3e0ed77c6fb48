package interop

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

const token1 = "TOKEN-of-the-mailer-0123456789"

var tokenHash = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token1)))

// Libraries without TLS and auth connect through stunnel and send the token as the body
// of the first put.
func TestTokenInPut(t *testing.T) {
	p := newPKI(t)
	for name, test := range map[string]struct{ program, script string }{
		"Pheanstalk": {"php", "php/token.php"},
		"beaneater":  {"ruby", "ruby/token.rb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, test.program)
			need(t, "stunnel")
			s := serve(t, p.listener("require-auth = true", "token-in-put = true")+
				fmt.Sprintf("[[identity]]\nname = \"mailer\"\ntokens = [%q]\n", tokenHash))
			addr := stunnel(t, s.addrs[0], side{ca: p.trusted.File, version: "1.3"})
			env := []string{"ADDR=" + addr, "TOKEN=" + token1}
			if got, err := output(t, "", env, test.program, test.script); err != nil || got != "ok\n" {
				t.Errorf("%s%v", got, err)
			}
		})
	}
}
