package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// After the unit has run a cluster member, it starts only cluster members.
func TestUnitOfMember(t *testing.T) {
	unit, err := os.ReadFile("../../dist/systemd/beanpole.service")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`(?m)^EnvironmentFile=-(.*)$`).FindSubmatch(unit)
	after := regexp.MustCompile(`(?m)^ExecStartPost=-\+/bin/sh -c '([^'$%]*)'$`).FindSubmatch(unit)
	if file == nil || after == nil {
		t.Fatal("the unit does not record that a member has run")
	}
	dir := t.TempDir()
	env := filepath.Join(dir, "env")
	run := func() (string, error) {
		script := strings.NewReplacer("/var/lib/beanpole", dir, string(file[1]), env).Replace(string(after[1]))
		if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(env)
		return string(text), err
	}
	if text, err := run(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a single server: %q, %v", text, err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "cluster"), 0o700), os.WriteFile(filepath.Join(dir, "cluster", "member.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once with the member, and once after it is lost
		if text, err := run(); text != "BEANPOLE_CLUSTER=true\n" || err != nil {
			t.Errorf("after a member: %q, %v", text, err)
		}
		os.RemoveAll(filepath.Join(dir, "cluster"))
	}
}
