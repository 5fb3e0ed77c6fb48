package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Names below DIR.
const (
	sub        = "cluster"
	memberFile = "member.json"
	nextFile   = memberFile + ".new" // beside no memberFile: there is none yet, or any more
	logDir     = "log"
	tokensDir  = "tokens"
)

var (
	// ErrNone says that a directory is not that of a member.
	ErrNone = errors.New("it is not the directory of a member of a cluster")

	// ErrUnfinished says that a directory was about to become that of a member, or to be
	// one no longer.
	ErrUnfinished = errors.New("cluster init or cluster join was interrupted (run it again)")

	// ErrLost says that a directory is that of a member, and does not say of which.
	ErrLost = errors.New("member.json is gone")
)

// A Member is what a member knows of itself.
type Member struct {
	Cluster string `json:"cluster"` // id, never used again
	ID      uint64 `json:"id"`      // never used again
	Listen  string `json:"listen"`  // address for the other members: host and port

	// Contacts are where the other members listen, as this one knew it last. Commands ask
	// there when this member does not run.
	Contacts []string `json:"contacts,omitempty"`
}

// A Directory is that of a member.
type Directory struct {
	Member
	Credentials *Credentials
	dir         string
}

// Exists reports whether a directory is that of a member. The error says that one was
// begun and not finished, or that this cannot be told.
func Exists(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, sub, memberFile))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return false, err
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, sub, name))
		return err == nil
	}
	switch {
	case !has(""):
		return false, nil
	case has(nextFile) || !has("member.crt"):
		return false, fmt.Errorf("%s is not complete: %w", filepath.Join(dir, sub), ErrUnfinished)
	}
	return false, fmt.Errorf("directory %[1]s: %[2]w, and what is beside it was that of a member ('beanpole cluster remove' that one at another member, empty %[1]s, and "+
		"'beanpole cluster join'; only if there is no such cluster any more: 'beanpole journal copy %[1]s NEW' makes a single server's journal of it)", dir, ErrLost)
}

// Open reads the directory of a member; the error wraps ErrNone if it is not one, and
// says what to do if it is damaged.
func Open(dir string) (*Directory, error) {
	is, err := Exists(dir)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, fmt.Errorf("directory %s: %w (see: beanpole cluster --help)", dir, ErrNone)
	}
	d := &Directory{dir: dir}
	if err := d.read(); errors.Is(err, fs.ErrPermission) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("directory %s: %w (if it is damaged: beanpole cluster remove the member at another one, empty the directory, and join)", d.path(""), err)
	}
	return d, nil
}

// read reads the ids and the credentials of the member.
func (d *Directory) read() error {
	text, err := os.ReadFile(d.path(memberFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &d.Member); err != nil {
		return fmt.Errorf("%s: %w", memberFile, err)
	}
	if d.ID == 0 || d.Cluster == "" || d.Listen == "" {
		return fmt.Errorf("%s: it has no id, cluster or listen", memberFile)
	}
	var b Bundle
	for name, to := range b.files() {
		text, err := os.ReadFile(d.path(name))
		if err != nil {
			return err
		}
		*to = string(text)
	}
	d.Credentials, err = b.Credentials(d.Cluster, d.ID)
	return err
}

// files returns the parts of a bundle by the names of their files.
func (b *Bundle) files() map[string]*string {
	return map[string]*string{"ca.crt": &b.CA, "ca.key": &b.CAKey, "member.crt": &b.Member, "member.key": &b.Key}
}

// Begin makes DIR/cluster for a member, and DIR if need be. What an interrupted Begin has
// left goes. The directory is not that of a member before Finish.
func Begin(dir, listen string, c *Credentials) (*Directory, error) {
	if is, err := Exists(dir); is {
		return nil, fmt.Errorf("directory %s is that of a member already (see: beanpole cluster status %[1]s)", dir)
	} else if err != nil && !errors.Is(err, ErrUnfinished) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Directory{dir: dir}
	d.become(listen, c)
	if err := d.clear(); err != nil {
		return nil, err
	}
	for _, name := range []string{"", tokensDir, logDir} {
		if err := os.Mkdir(d.path(name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(writeFile(d.path(nextFile), nil), syncDirs(d.path(""))); err != nil { // before all that only a member has
		return nil, err
	}
	return d, d.writeCredentials()
}

// become makes the directory, in memory, that of the member with these credentials.
func (d *Directory) become(listen string, c *Credentials) {
	d.Member = Member{Cluster: c.Cluster, ID: c.ID, Listen: listen}
	d.Credentials = c
}

// writeCredentials writes the credentials, in place of those that are there.
func (d *Directory) writeCredentials() error {
	b := d.Credentials.Bundle()
	for name, text := range b.files() {
		if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := writeFile(d.path(name), []byte(*text)); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what an interrupted Begin has left, and nothing else.
func (d *Directory) clear() error {
	entries, err := os.ReadDir(d.path(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ours := []string{tokensDir, logDir, nextFile}
	for name := range new(Bundle).files() {
		ours = append(ours, name)
	}
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) {
			return fmt.Errorf("%s is in the way: no member has made it (move it away)", d.path(e.Name()))
		}
	}
	return os.RemoveAll(d.path(""))
}

// Finish makes the directory that of a member.
func (d *Directory) Finish() error {
	if err := d.write(); err != nil {
		return err
	}
	return d.own()
}

// SetContacts notes where the other members listen. It is for one goroutine at a time.
func (d *Directory) SetContacts(addrs []string) error {
	if slices.Equal(addrs, d.Contacts) {
		return nil
	}
	d.Contacts = addrs
	return d.write()
}

// write writes member.json in one step.
func (d *Directory) write() error {
	text, err := json.MarshalIndent(d.Member, "", "  ")
	if err != nil {
		return err
	}
	next := d.path(nextFile)
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := writeFile(next, append(text, '\n')); err != nil {
		return err
	}
	if err := os.Rename(next, d.path(memberFile)); err != nil {
		return err
	}
	return syncDirs(d.path(tokensDir), d.path(""), d.dir)
}

// Refound makes the directory that of the first member of a new cluster. The log must be
// made so before. If it is interrupted, Open fails, and it can be done again.
func (d *Directory) Refound(c *Credentials) error {
	d.become(d.Listen, c)
	if err := d.writeCredentials(); err != nil {
		return err
	}
	return d.Finish()
}

// Remove makes the directory that of a single server again: only the journal stays, and
// what root has written to it is the owner's.
func (d *Directory) Remove() error {
	if err := os.Rename(d.path(memberFile), d.path(nextFile)); err != nil {
		return err
	}
	if err := os.RemoveAll(d.path("")); err != nil {
		return err
	}
	if err := d.own(); err != nil {
		return err
	}
	return syncDirs(d.dir)
}

func (d *Directory) path(name string) string { return filepath.Join(d.dir, sub, name) }

// own gives all files below DIR to the owner of DIR, if root has made them. A server may
// remove some meanwhile.
func (d *Directory) own() error {
	info, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || st.Uid == 0 {
		return nil
	}
	root, err := os.OpenRoot(d.dir) // its owner may put links there meanwhile
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = root.Lchown(path, int(st.Uid), int(st.Gid))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// CheckAddress says what is wrong with the address of a member, which others must be able
// to connect to.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("want HOST:PORT, such as 10.0.0.1:11400, not %q", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("want a port from 1 to 65535 in %q", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("want an address in %q by which the other members reach this one", addr)
	}
	return nil
}

// writeFile makes a file that only its owner may read, durably.
func writeFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDirs makes the names in directories durable.
func syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		err = f.Sync()
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
