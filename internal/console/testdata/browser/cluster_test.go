package browser

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func members(t *testing.T) []*server {
	t.Helper()
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(program, append([]string{"cluster"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("cluster %q: %v\n%s", args, err, out)
		}
	}
	first, token := freePort(t), filepath.Join(dir, "token")
	var all []*server
	for i := range 3 {
		files := filepath.Join(dir, fmt.Sprint(i))
		if i == 0 {
			run("init", files, "--listen", first)
		} else {
			run("join-token", filepath.Join(dir, "0"), "--out", token)
			run("join", files, first, "--join-token-file", token, "--listen", freePort(t))
		}
		all = append(all, start(t, "-b", files))
	}
	return all
}

// memberRows returns the member section of the server page as text: the role of each
// member, and whether it is reachable.
const memberRows = "[...document.querySelectorAll('[aria-label=Members] tbody tr')].map(r => r.querySelector('[data-label=Role]').textContent + (r.querySelector('[data-label=Heard]').textContent == 'now' ? ' yes' : ' no'))"

func showsMembers(t *testing.T, ctx context.Context, want string) {
	t.Helper()
	until(t, ctx, memberRows+".sort().join() == '"+want+"'")
}

// Each member shows the same cluster, its current problems, and the new leader. The pages
// are accessible.
func TestCluster(t *testing.T) {
	all := members(t)
	leader, follower, third := all[0], all[1], all[2]
	leader.put("mail", `{"job":"Mail"}`, 3)
	ctx := browse(t)
	for _, s := range []*server{leader, follower} {
		do(t, ctx, visit(s.url("server")))
		showsMembers(t, ctx, "leader yes,voter yes,voter yes")
		do(t, ctx, visit(s.url("")))
		until(t, ctx, "document.querySelector('#n-ready').textContent == '3' && !document.querySelector('#attention-h + *').textContent.includes('cluster')")
		if *shots != "" {
			name := map[*server]string{leader: "leader", follower: "follower"}[s]
			picture(ctx, t, s.url("server"), "console-cluster-"+name+".png", 1280, "light")
			picture(ctx, t, s.url("server"), "console-cluster-"+name+"-phone.png", 360, "dark")
		}
	}

	do(t, ctx, visit(follower.url("server")))
	showsMembers(t, ctx, "leader yes,voter yes,voter yes")
	eval[bool](t, ctx, "window.here = true")
	third.stop()
	showsMembers(t, ctx, "leader yes,voter no,voter yes")
	if !eval[bool](t, ctx, "!!window.here") {
		t.Error("the page was loaded as a whole")
	}
	do(t, ctx, visit(follower.url("")))
	until(t, ctx, "document.querySelector('.attention .bad p')?.textContent.includes('cannot be reached')")
	const age = "document.querySelector('.attention li:last-child p').textContent"
	until(t, ctx, age+" != "+strconv.Quote(eval[string](t, ctx, age))) // the page was updated
	if !eval[bool](t, ctx, "[...document.querySelectorAll('.attention .bad p')].some(p => p.textContent.includes('cannot be reached'))") {
		t.Error("an update of the page replaced a finding by another")
	}
	eval[any](t, ctx, "document.querySelector('.attention .button').click()")
	until(t, ctx, "location.pathname == '/console/server' && location.hash == '#cluster'")
	if *shots != "" {
		picture(ctx, t, follower.url(""), "console-cluster-loss.png", 1280, "dark")
	}
	third.restart()
	do(t, ctx, visit(follower.url("server")))
	showsMembers(t, ctx, "leader yes,voter yes,voter yes")

	for _, s := range []*server{follower, leader} { // any member can answer
		const own = "[...document.querySelectorAll('[aria-label=Members] tr')].find(r => r.textContent.includes('this member'))"
		do(t, ctx, visit(s.url("server")))
		eval[any](t, ctx, own+".querySelector('a[data-dialog]').click()")
		until(t, ctx, "!!document.querySelector('dialog[open] button.go')")
		eval[any](t, ctx, "document.querySelector('dialog[open] button.go').click()")
		until(t, ctx, own+".querySelector('[data-label=Role]').textContent == 'leader'")
	}
	do(t, ctx, visit(follower.url("server")))
	showsMembers(t, ctx, "leader yes,voter yes,voter yes")

	leader.stop()
	showsMembers(t, ctx, "leader yes,voter no,voter yes")
	do(t, ctx, visit(follower.url("")))
	until(t, ctx, "document.querySelector('#n-ready').textContent == '3'")
}

// The pages of a cluster are accessible on the leader, on a follower, and after the loss
// of a member.
func TestClusterAccessibility(t *testing.T) {
	program := axe(t)
	all := members(t)
	ctx := browse(t)
	look := func(want string) {
		t.Helper()
		for _, s := range all[:2] {
			do(t, ctx, visit(s.url("server")))
			showsMembers(t, ctx, want)
			for _, path := range []string{"", "server"} {
				inBothThemes(t, ctx, program, s.url(path))
			}
		}
	}
	look("leader yes,voter yes,voter yes")
	all[2].stop()
	look("leader yes,voter no,voter yes")
}
