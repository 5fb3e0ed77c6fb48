package cluster

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// A failed command prints the reason, and returns its exit code.
func TestErrors(t *testing.T) {
	t.Setenv("BEANPOLE_ADDR", "127.0.0.1:1")
	member, damaged, binlogs := filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2"), t.TempDir()
	for _, dir := range []string{member, damaged} {
		if err := execute(t, "init", dir, "--listen", "127.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(damaged, "cluster", "log")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(binlogs, "binlog.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(bad, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args string
		code int
		text string
	}{
		{"init " + t.TempDir(), exit.Usage, "--listen is required"},
		{"init " + t.TempDir() + " --listen here", exit.Usage, "--listen: "},
		{"init " + member + " --listen 127.0.0.1:1", exit.Journal, "member"},
		{"init " + binlogs + " --listen 127.0.0.1:1", exit.Journal, "contains beanstalkd files (binlog.1)"},
		{"join " + t.TempDir() + " 127.0.0.1:1 --listen 127.0.0.1:2", exit.Usage, "--join-token-file is required"},
		{"join " + t.TempDir() + " 127.0.0.1:1 --listen 127.0.0.1:2 --join-token-file " + bad, exit.Usage, "--join-token-file " + bad},
		{"join " + t.TempDir() + " 127.0.0.1:2 --bootstrap --listen 127.0.0.1:2", exit.Usage, "no member at 127.0.0.1:2"},
		{"join-token " + t.TempDir(), exit.Journal, ""},
		{"remove " + member + " x", exit.Usage, `"x" is not the id of a member`},
		{"status " + member + " -a 127.0.0.1:1", exit.Usage, "want one directory, or -a ADDR"},
		{"status", exit.Disconnected, "the server at 127.0.0.1:1 has no local socket"},
		{"status --offline", exit.Usage, "--offline requires a directory"},
		{"status --offline " + member, 0, ""},
		{"status --offline " + damaged, exit.Journal, "the member cannot use this directory: "},
	} {
		err := execute(t, strings.Fields(x.args)...)
		if err == nil {
			if x.code != 0 {
				t.Errorf("%s: no error, want code %d", x.args, x.code)
			}
			continue
		}
		if code := exit.Code(err); code != x.code || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: code %d, %v; want code %d, %q", x.args, code, err, x.code, x.text)
		}
	}
}

func execute(t *testing.T, args ...string) error {
	t.Helper()
	cmd := New()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(new(bytes.Buffer))
	return cmd.ExecuteContext(t.Context())
}

// If the cluster does not answer in time, the error states that, without the text of the
// context's error.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cmd := New()
		cmd.SetContext(t.Context())
		ctx, cancel := withPatience(cmd)
		defer cancel()
		<-ctx.Done()
		if err := inTime(ctx, context.DeadlineExceeded); err.Error() != "the cluster has not answered within 30s" {
			t.Error(err)
		}
	})
}
