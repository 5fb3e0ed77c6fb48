package directory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// begin creates the directory of the first member of a cluster.
func begin(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := Begin(vfs.OS, dir, Identity{Listen: "10.0.0.1:11400", Unfinished: Init}, NewCA(NewCluster(), NewID()))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	made := begin(t, dir)
	d, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	if d.ID != made.ID || d.Cluster != made.Cluster || d.Listen != made.Listen || d.Contacts != nil {
		t.Errorf("read %+v, wrote %+v", d.Identity, made.Identity)
	}
	if Fingerprint(d.Credentials.CA) != Fingerprint(made.Credentials.CA) {
		t.Error("the authority is another one")
	}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: others have permissions: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(vfs.OS, dir, made.Identity, made.Credentials); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second Begin: %v", err)
	}
}

func TestNotAMember(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(vfs.OS, dir); !errors.Is(err, ErrNone) {
		t.Errorf("a directory without cluster: %v", err)
	}
	if is, err := Exists(vfs.OS, filepath.Join(dir, "none")); is || err != nil {
		t.Errorf("no directory: %v, %v", is, err)
	}
}

// After an interrupted Begin, the directory is not a member's and does not prevent the
// next Begin. Other files in it are kept.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	c, m := NewCA(NewCluster(), 1), Identity{Listen: "10.0.0.1:11400", Unfinished: Join}
	if _, err := Begin(vfs.OS, dir, m, c); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(vfs.OS, dir); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "repeat 'beanpole cluster join'") {
		t.Errorf("without Finish: %v", err)
	}
	if d, err := Open(vfs.OS, dir, Join); err != nil || d.ID != 1 {
		t.Errorf("the command that was interrupted: %v", err)
	}
	d, err := Begin(vfs.OS, dir, m, c)
	if err == nil {
		err = d.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "journal")
	if err := os.MkdirAll(filepath.Join(other, "cluster", "photos"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(vfs.OS, other, m, c); err == nil || !strings.Contains(err.Error(), "photos") {
		t.Errorf("a foreign directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "cluster", "photos")); err != nil {
		t.Error(err)
	}
}

// A directory that has lost its member's ids still belongs to a member, and no other
// member can be created in it.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	d := begin(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "cluster", "log", "segment"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "cluster", "member.json")); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(vfs.OS, dir)
	_, begun := Begin(vfs.OS, dir, d.Identity, d.Credentials)
	for _, err := range []error{opened, begun} {
		if !errors.Is(err, ErrLost) || strings.Contains(err.Error(), "again") {
			t.Error(err)
		}
	}
}

func TestContactsAndRemove(t *testing.T) {
	dir := t.TempDir()
	d := begin(t, dir)
	if err := d.SetContacts([]string{"10.0.0.2:11400"}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(vfs.OS, dir)
	if err != nil || len(d.Contacts) != 1 || d.Contacts[0] != "10.0.0.2:11400" {
		t.Fatal(d.Contacts, err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if is, err := Exists(vfs.OS, dir); is || err != nil {
		t.Error(is, err)
	}
}

func TestToken(t *testing.T) {
	d := begin(t, t.TempDir())
	now := time.Now()
	made, err := d.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	line := made.String()
	if strings.ContainsAny(line, " \n") {
		t.Errorf("%q is more than one word", line)
	}
	token, err := ParseToken(line + "\n")
	if err != nil || token != made {
		t.Fatalf("%q is read as %+v, %v", line, token, err)
	}
	if err := d.Redeem(token.Secret+"x", now); !errors.Is(err, ErrToken) {
		t.Errorf("another secret: %v", err)
	}
	if err := d.Redeem(token.Secret, now.Add(TokenLife-time.Minute)); err != nil {
		t.Errorf("within the hour: %v", err)
	}
	if err := d.Redeem(token.Secret, now); !errors.Is(err, ErrToken) {
		t.Errorf("a second time: %v", err)
	}
	late, err := d.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Redeem(late.Secret, now.Add(TokenLife+time.Minute)); !errors.Is(err, ErrToken) {
		t.Errorf("after an hour: %v", err)
	}
	if left, err := os.ReadDir(d.path(tokensDir)); err != nil || len(left) != 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// Redeem syncs the directory, so that the token stays used up after a power failure.
func TestRedeemIsDurable(t *testing.T) {
	dir := t.TempDir()
	token, err := begin(t, dir).NewToken()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(faultfs.New(vfs.OS, faultfs.Fault{Op: faultfs.SyncDir}), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Redeem(token.Secret, time.Now()); !errors.Is(err, syscall.EIO) {
		t.Errorf("the directory cannot be synced, and Redeem returns %v", err)
	}
}

// If several machines redeem a token at the same time, one succeeds.
func TestTokenOnce(t *testing.T) {
	d := begin(t, t.TempDir())
	now := time.Now()
	token, err := d.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var good atomic.Int32
	for range 16 {
		wg.Go(func() {
			if d.Redeem(token.Secret, now) == nil {
				good.Add(1)
			}
		})
	}
	wg.Wait()
	if good.Load() != 1 {
		t.Errorf("it was good %d times", good.Load())
	}
}

func TestBadTokens(t *testing.T) {
	for _, line := range []string{"", "x", "beanpole-join-1.a.b.c@d", "beanpole-join-2." + strings.Repeat("0", 32) + "." + strings.Repeat("0", 64) + ".s@a:1"} {
		if _, err := ParseToken(line); err == nil {
			t.Errorf("%q is accepted as a token", line)
		}
	}
}

func TestCredentials(t *testing.T) {
	first := NewCA(NewCluster(), NewID())
	b := first.Issue(7).Bundle()
	read, err := b.Credentials(first.Cluster, 7)
	if err != nil {
		t.Fatal(err)
	}
	third := read.Issue(8).Bundle()
	if _, err := third.Credentials(first.Cluster, 8); err != nil {
		t.Errorf("a member that joined cannot admit another: %v", err)
	}
	if _, err := b.Credentials(first.Cluster, 8); err == nil {
		t.Error("the certificate of member 7 is accepted for member 8")
	}
	if _, err := b.Credentials(NewCluster(), 7); err == nil {
		t.Error("the certificate is accepted for another cluster")
	}
	forged := NewCA(first.Cluster, 7).Bundle()
	forged.CA = b.CA
	if _, err := forged.Credentials(first.Cluster, 7); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	for range 1000 {
		if id := NewID(); id == 0 || id > maxID {
			t.Fatal(id)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	for addr, good := range map[string]bool{
		"10.0.0.1:11400": true, "[::1]:11400": true, "queue-0.queue:11400": true,
		"": false, "10.0.0.1": false, "10.0.0.1:0": false, "10.0.0.1:x": false, ":11400": false, "0.0.0.0:11400": false, "[::]:1": false,
	} {
		if err := CheckAddress(addr); (err == nil) != good {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
