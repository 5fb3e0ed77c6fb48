package daemon

import (
	"strings"
	"syscall"
	"testing"
)

// These are the tokens of the tests, with their hashes.
const (
	mailToken, mailHash   = "TOKEN-mail-0123456789", "sha256:e040a0addecb1b9fb6bc37f2c28361c38cd5e141ba595cd715a89f42428193b7"
	adminToken, adminHash = "TOKEN-admin-0123456789", "sha256:f2ccb412cfae8407dbdd3302ad561a59cf13e2ffc3082742fbf39ff9dfe5cb1c"
)

const (
	listener = "[[listener]]\naddress = '127.0.0.1:0'\nrequire-auth = true\n"
	mailer   = "[[identity]]\nname = 'mailer'\ntokens = ['" + mailHash + "']\n"
	boss     = "[[identity]]\nname = 'admin'\ntokens = ['" + adminHash + "']\n"
)

// allow returns a rule for all identities.
func allow(tubes, what string) string {
	return "[[rule]]\nidentities = ['*']\ntubes = ['" + tubes + "']\nallow = ['" + what + "']\n"
}

// SIGHUP replaces the rights and limits. A file with an error changes nothing, and
// neither does a file that lacks its identities or rules because it is still being
// written.
func TestPolicyIsReplaced(t *testing.T) {
	path, write := configFile(t)
	write(listener + mailer + allow("mail", "put"))
	p := start(t, "--config", path)
	addr := p.address()
	put := func(tube string) bool {
		replies := talk(t, addr, "auth "+mailToken, "use "+tube, "put 0 0 60 1", "a")
		return strings.Contains(replies, "INSERTED")
	}
	if !put("mail") || put("news") {
		t.Error("at first")
	}
	write("max-job-size = 7\n" + listener + mailer + allow("news", "put"))
	p.signals <- syscall.SIGHUP
	p.await("take effect with the next restart.* settings=max-job-size$")
	if put("mail") || !put("news") {
		t.Error("with other rules")
	}
	for text, why := range map[string]string{
		"[[rule]]\nidentities = ['mailr']\ntubes = ['*']\nallow = ['put']": "unknown identity",
		"":                "no longer has an \\[\\[identity\\]\\]",
		listener + mailer: "no longer has a \\[\\[rule\\]\\]",
	} {
		write(text)
		p.signals <- syscall.SIGHUP
		p.await("invalid configuration; keeping the previous one.*" + why)
		if put("mail") || !put("news") {
			t.Errorf("after %q", text)
		}
	}
}

// The admin API shows the queue to clients with the stats right. Health checks need no
// right.
func TestAdminPages(t *testing.T) {
	p := start(t, "-p", "0", "-b", t.TempDir(), "--admin", "127.0.0.1:0")
	talk(t, p.address(), "use mail", "put 0 0 60 5", "hello")
	pages := p.await(adminLine)
	text := get(t, pages, "/metrics")
	for _, want := range []string{`beanpole_tube_jobs{state="ready",tube="mail"} 1`, "beanpole_journal_healthy 1", `beanpole_commands_total{verb="put"} 1`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if got := get(t, pages, "/debug/pprof/"); !strings.HasPrefix(got, "404 ") {
		t.Error(got)
	}
	p.signals <- syscall.SIGUSR1
	p.await("draining")
	if got := get(t, pages, "/readyz"); !strings.HasPrefix(got, "503 draining") {
		t.Error(got)
	}
	if got := get(t, pages, "/healthz"); !strings.HasPrefix(got, "200 ") {
		t.Error(got)
	}

	path, write := configFile(t)
	write(mailer + allow("*", "stats"))
	p = start(t, "-p", "0", "--config", path, "--admin", "127.0.0.1:0", "--admin-profiles", "--metrics-tubes", "0")
	p.address()
	pages = p.await(adminLine)
	for page, want := range map[string]string{
		"/metrics": "401", "/debug/pprof/": "401", "/readyz": "200",
		mailToken + "@/metrics": "200", mailToken + "@/debug/pprof/": "200", "TOKEN-wrong-0123456789@/metrics": "401",
	} {
		if got := get(t, pages, page); !strings.HasPrefix(got, want+" ") || strings.Contains(got, "tube=") {
			t.Errorf("%s: %.50q, want %s", page, got, want)
		}
	}
}

// Limits refuse puts, tubes and watches, but never deletes. Each kind of refusal is
// logged. SIGHUP changes the limits.
func TestLimits(t *testing.T) {
	path, write := configFile(t)
	limit := func(tubes, what string) string { return "[[limit]]\ntubes = ['" + tubes + "']\n" + what + "\n" }
	write(limit("sm*", "jobs = 2") + limit("bytes", "bytes = 12"))
	p := start(t, "-p", "0", "--config", path, "--max-tubes", "3", "--max-watched", "1")
	addr := p.address()
	if got := talk(t, addr, "use small", "put 0 0 60 1", "a", "put 0 0 60 1", "b", "put 0 0 60 1", "c", "delete 1", "put 0 0 60 1", "d"); got != "USING small\nINSERTED 1\nINSERTED 2\nOUT_OF_MEMORY\nDELETED\nINSERTED 4\n" {
		t.Errorf("%q", got)
	}
	if got := talk(t, addr, "use bytes", "put 0 0 60 9", "aaaaaaaaa", "put 0 0 60 5", "bbbbb", "use fourth", "watch small"); got != "USING bytes\nINSERTED 5\nOUT_OF_MEMORY\nOUT_OF_MEMORY\nOUT_OF_MEMORY\n" {
		t.Errorf("%q", got)
	}
	for _, what := range []string{`"\[\[limit\]\] jobs" tube=small`, `"\[\[limit\]\] bytes" tube=bytes`, "max-tubes tube=fourth", "max-watched tube=small"} {
		p.await("refusing commands; a limit is reached.* limit=" + what)
	}
	write(limit("sm*", "jobs = 100"))
	p.signals <- syscall.SIGHUP
	p.await("the configuration was read again")
	if got := talk(t, addr, "use small", "put 0 0 60 1", "e"); !strings.HasPrefix(got, "USING small\nINSERTED ") {
		t.Errorf("%q", got)
	}
}
