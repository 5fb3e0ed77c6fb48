package directory

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A token that was redeemed is not there again after a power cut: the directory is synced
// before the answer.
func TestRedeemIsDurable(t *testing.T) {
	if dir := os.Getenv("DIRECTORY_TEST_REDEEM"); dir != "" { // as the child
		d, err := Open(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Redeem(os.Getenv("DIRECTORY_TEST_SECRET"), time.Now()); err != nil {
			t.Fatal(err)
		}
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	dir := t.TempDir()
	token, err := begin(t, dir).NewToken()
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(t.TempDir(), "calls")
	child := exec.Command(strace, "-f", "-y", "-o", calls, "-e", "trace=unlinkat,unlink,fsync", os.Args[0], "-test.run=^TestRedeemIsDurable$")
	child.Env = append(os.Environ(), "DIRECTORY_TEST_REDEEM="+dir, "DIRECTORY_TEST_SECRET="+token.Secret)
	if out, err := child.CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v\n%s", err, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	_, after, removed := strings.Cut(string(text), filepath.Join(dir, "cluster", "tokens")+"/")
	if !removed || !strings.Contains(after, filepath.Join(dir, "cluster", "tokens")+">") {
		t.Errorf("the calls are\n%s", text)
	}
}
