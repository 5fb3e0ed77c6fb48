package daemon

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cli/cluster"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// command runs "beanpole cluster", which must succeed, and returns its output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := cluster.New()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err != nil && args[0] != "status" { // status fails if something is wrong
		t.Fatalf("cluster %q: %v", args, err)
	}
	return strings.TrimSpace(out.String())
}

// until requests a member's status repeatedly until it matches pattern.
func until(t *testing.T, dir, pattern string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		got := command(t, "status", dir, "--json")
		if regexp.MustCompile(pattern).MatchString(got) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no match for %s: %s", pattern, got)
		}
	}
}

const (
	twoVoters = `"role":"(leader|voter)".*"role":"(leader|voter)"`
	alone     = `^{"members":\[{[^{]*}\],.*"quorum":true`
	removed   = `^this member was removed from the cluster \('beanpole cluster rejoin \S+' makes it a new member, with the jobs of the others\)$`
)

func reserved(t *testing.T) string {
	t.Helper()
	port, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	return "127.0.0.1:" + port.String()
}

// endedWith waits until a server has exited, and checks the exit code 10 and a part of
// the error.
func (p *process) endedWith(text string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the server did not exit")
	}
	if p.err == nil || exit.Code(p.err) != exit.Journal || !regexp.MustCompile(text).MatchString(p.err.Error()) {
		p.t.Errorf("it exited with %v", p.err)
	}
}

// TestMembers runs a cluster: a follower answers requests through the leader, the
// leadership moves, and a member is removed while it runs, stops, joins again as a new
// member, and leaves.
func TestMembers(t *testing.T) {
	dirs := t.TempDir()
	a, b := filepath.Join(dirs, "a"), filepath.Join(dirs, "b")
	addrA, addrB := reserved(t), reserved(t)
	member := func(dir string) *process {
		return start(t, "-l", "127.0.0.1", "-p", "0", "-b", dir, "--cluster", "--admin", "127.0.0.1:0")
	}
	command(t, "init", a, "--listen", addrA)
	first := member(a)
	first.await("this member leads the cluster")
	if got := talk(t, first.address(), "put 0 0 60 1", "x"); got != "INSERTED 1\n" {
		t.Fatal(got)
	}
	token := filepath.Join(dirs, "token")
	command(t, "join-token", a, "--out", token)
	id := strings.TrimPrefix(command(t, "join", b, addrA, "--join-token-file", token, "--listen", addrB), "member ")
	second := member(b)
	until(t, a, twoVoters)

	// The follower serves the protocol, the API and the metrics.
	if got := talk(t, second.address(), "peek 1"); got != "FOUND 1 1\nx\n" {
		t.Error(got)
	}
	pagesA, pagesB := first.await(adminLine), second.await(adminLine)
	put := func(pages, want string) {
		t.Helper()
		resp, err := http.Post("http://"+pages+"/api/v1/tubes/mail/jobs", "application/json", strings.NewReader(`{"body":"y"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusCreated || strings.TrimSpace(string(text)) != want {
			t.Errorf("%d %s, %v", resp.StatusCode, text, err)
		}
	}
	put(pagesB, `{"id":2}`)
	first.await(`"a change through the API" operation=putJob`)
	for pages, leads := range map[string]string{pagesA: "1", pagesB: "0"} {
		if got := get(t, pages, "/metrics"); !strings.Contains(got, "\nbeanpole_cluster_leads "+leads+"\n") || !strings.Contains(got, "\nbeanpole_cluster_quorum 1\n") {
			t.Error(got)
		}
	}
	if got := talk(t, second.address(), "stats"); !strings.Contains(got, "\ncluster-members: 2\n") {
		t.Error(got)
	}

	command(t, "transfer", a)
	second.await("this member leads the cluster")
	put(pagesA, `{"id":3}`)
	second.await(`"a change through the API" operation=putJob`)

	// A follower ignores the signal to drain. A drain of the leader ends with its
	// leadership.
	first.signals <- syscall.SIGUSR1
	first.await("USR1 is ignored")
	second.signals <- syscall.SIGUSR1
	second.await("draining")
	if got := talk(t, second.address(), "put 0 0 60 1", "x"); got != "DRAINING\n" {
		t.Error(got)
	}
	command(t, "transfer", b)
	until(t, a, `"address":"`+addrA+`","role":"leader"`)
	if got := talk(t, first.address(), "put 0 0 60 1", "x"); got != "INSERTED 4\n" {
		t.Error(got)
	}
	command(t, "transfer", a)
	until(t, a, `"address":"`+addrB+`","role":"leader"`)
	if got := talk(t, second.address(), "put 0 0 60 1", "x"); got != "INSERTED 5\n" {
		t.Error(got)
	}
	command(t, "transfer", b)
	until(t, a, `"address":"`+addrA+`","role":"leader"`)

	command(t, "remove", a, id)
	second.endedWith(removed)
	member(b).endedWith(removed)
	command(t, "rejoin", b)
	second = member(b)
	until(t, a, twoVoters)
	if got := talk(t, second.address(), "peek 3"); got != "FOUND 3 1\ny\n" {
		t.Error(got)
	}
	command(t, "leave", b)
	second.endedWith(removed)
	until(t, a, alone)
	if err := first.stop(); err != nil {
		t.Error(err)
	}
}
