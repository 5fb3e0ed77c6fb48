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

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Names of files and directories below DIR.
const (
	sub        = "cluster"
	memberFile = "member.json"
	nextFile   = memberFile + ".new" // replaces memberFile by a rename
	logDir     = "log"
	tokensDir  = "tokens"
)

var (
	// ErrNone means that a directory does not belong to a member.
	ErrNone = errors.New("not the directory of a cluster member")

	// ErrUnfinished means that a command was interrupted while it created, changed or
	// removed the member of a directory.
	ErrUnfinished = errors.New("a command was interrupted")

	// ErrLost means that a member's directory has lost the member's ids.
	ErrLost = errors.New("member.json is missing")
)

// The commands that set Identity.Unfinished.
const (
	Init    = "init"
	Join    = "join"
	Rejoin  = "rejoin"
	Recover = "recover"
	Leave   = "leave"
)

// An Identity identifies a member.
type Identity struct {
	Cluster string `json:"cluster"` // unique id, never reused
	ID      uint64 `json:"id"`      // never reused
	Listen  string `json:"listen"`  // address for the other members: host and port

	// Contacts lists the last known addresses of the other members. Commands use them
	// when this member is not running.
	Contacts []string `json:"contacts,omitempty"`

	// Unfinished is the command that was interrupted while it changed the directory. No
	// server starts on the directory until the command is repeated. It is empty for a
	// member that can run.
	Unfinished string `json:"unfinished,omitempty"`

	// Membership is the input of an unfinished join or rejoin: the members of the cluster.
	Membership json.RawMessage `json:"membership,omitempty"`
}

// A memberText is the content of member.json. A single file contains ids and credentials,
// so that both change in one step.
type memberText struct {
	Identity
	Credentials Bundle `json:"credentials"`
}

// A Directory is the directory of a member.
type Directory struct {
	Identity
	Credentials *Credentials
	fsys        vfs.FS
	dir         string
}

// Exists reports whether a directory belongs to a member. The error wraps ErrUnfinished
// if an interrupted command must be repeated first, and ErrLost if the ids are lost.
func Exists(fsys vfs.FS, dir string) (bool, error) {
	var m Identity
	text, err := vfs.ReadFile(fsys, filepath.Join(dir, sub, memberFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		if segments, _ := fsys.List(filepath.Join(dir, sub, logDir)); len(segments) == 0 {
			return false, nil
		}
		return false, fmt.Errorf("directory %s: %w; the member's other files remain (%s)", dir, ErrLost, Save(dir))
	case err != nil:
		return false, err
	case json.Unmarshal(text, &m) == nil && m.Unfinished != "":
		return false, unfinished(dir, m.Unfinished)
	}
	return true, nil
}

// Save returns advice for a member's directory that a command cannot use, because it
// might contain the last copy of the jobs.
func Save(dir string) string {
	return fmt.Sprintf("'beanpole journal copy %[1]s NEW' saves its jobs as a single server's journal; if the other members are running, they have all the jobs: "+
		"remove this member with 'beanpole cluster remove' there, move %[1]s away, and run 'beanpole cluster join' with an empty directory", dir)
}

func unfinished(dir, command string) error {
	return fmt.Errorf("directory %s: %w: repeat 'beanpole cluster %s', which then finishes", dir, ErrUnfinished, command)
}

// Open reads the directory of a member. The error wraps ErrNone if the directory does not
// belong to a member. If a command is given, Open also opens a directory that this
// command has left unfinished.
func Open(fsys vfs.FS, dir string, command ...string) (*Directory, error) {
	is, err := Exists(fsys, dir)
	if err != nil && !errors.Is(err, ErrUnfinished) {
		return nil, err
	}
	if !is && err == nil {
		return nil, fmt.Errorf("directory %s: %w (see: beanpole cluster --help)", dir, ErrNone)
	}
	d := &Directory{fsys: fsys, dir: dir}
	if err := d.read(); errors.Is(err, fs.ErrPermission) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("directory %s: %w (%s)", d.path(""), err, Save(dir))
	}
	if d.Unfinished != "" && !slices.Contains(command, d.Unfinished) {
		return nil, unfinished(dir, d.Unfinished)
	}
	return d, nil
}

// read reads the ids and the credentials of the member.
func (d *Directory) read() error {
	text, err := vfs.ReadFile(d.fsys, d.path(memberFile))
	if err != nil {
		return err
	}
	var m memberText
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", memberFile, err)
	}
	if d.Identity = m.Identity; d.ID == 0 || d.Cluster == "" || d.Listen == "" {
		return fmt.Errorf("%s: id, cluster or listen is missing", memberFile)
	}
	if d.Credentials, err = m.Credentials.Credentials(d.Cluster, d.ID); err != nil {
		err = fmt.Errorf("%s: %w", memberFile, err)
	}
	return err
}

// CheckNone returns an error unless init or join can create a member in the directory.
// Both can follow an interrupted init or join.
func CheckNone(fsys vfs.FS, dir string) error {
	is, err := Exists(fsys, dir)
	if is {
		return fmt.Errorf("directory %s already belongs to a member (see: beanpole cluster status %[1]s)", dir)
	}
	if errors.Is(err, ErrUnfinished) {
		if _, other := Open(fsys, dir, Init, Join); other == nil {
			return nil
		}
	}
	return err
}

// Begin creates DIR/cluster for a member, and DIR if necessary. It replaces an unfinished
// member. m.Unfinished is the command; the member cannot run before Finish.
func Begin(fsys vfs.FS, dir string, m Identity, c *Credentials) (*Directory, error) {
	if err := CheckNone(fsys, dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Directory{fsys: fsys, dir: dir}
	for _, name := range []string{"", tokensDir, logDir} {
		if err := fsys.Mkdir(d.path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	names, err := fsys.List(d.path(""))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.Contains([]string{memberFile, nextFile, tokensDir, logDir}, name) {
			return nil, fmt.Errorf("unexpected file %s in the cluster directory; move it elsewhere and try again", d.path(name))
		}
	}
	return d, d.Become(m, c)
}

// Become gives the directory to another member, in one step. m.Unfinished is the command
// that creates the member; m needs no ids.
func (d *Directory) Become(m Identity, c *Credentials) error {
	m.Cluster, m.ID = c.Cluster, c.ID
	d.Identity, d.Credentials = m, c
	return d.write()
}

// Finish completes a command. Afterwards, the member can run.
func (d *Directory) Finish() error {
	d.Unfinished, d.Membership = "", nil
	return d.write()
}

// SetContacts stores the addresses of the other members. It must not be called
// concurrently.
func (d *Directory) SetContacts(addrs []string) error {
	if slices.Equal(addrs, d.Contacts) {
		return nil
	}
	d.Contacts = addrs
	return d.write()
}

// write writes member.json in one step. Before that, it gives all files to the owner of
// DIR.
func (d *Directory) write() error {
	text, err := json.MarshalIndent(memberText{d.Identity, d.Credentials.Bundle()}, "", "  ")
	if err != nil {
		return err
	}
	next := d.path(nextFile)
	if err := d.fsys.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := vfs.WriteFile(d.fsys, next, append(text, '\n')); err != nil {
		return err
	}
	if err := d.own(); err != nil {
		return err
	}
	if err := d.fsys.Rename(next, d.path(memberFile)); err != nil {
		return err
	}
	return d.syncDirs(tokensDir, "", "..")
}

// Clear removes the log, the tokens and all other files of the previous member. Only
// member.json remains.
func (d *Directory) Clear() error {
	for _, dir := range []string{logDir, tokensDir, ""} {
		names, err := d.fsys.List(d.path(dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			if dir == "" && slices.Contains([]string{memberFile, logDir, tokensDir}, name) {
				continue
			}
			if err := d.fsys.Remove(filepath.Join(d.path(dir), name)); err != nil {
				return err
			}
		}
	}
	return d.syncDirs(logDir, tokensDir, "")
}

// Leave starts to turn the directory into a single server's directory. Afterwards, no
// member can run on it.
func (d *Directory) Leave() error {
	d.Unfinished = Leave
	return d.write()
}

// Remove turns the directory into a single server's directory: it deletes all files
// except the journal.
func (d *Directory) Remove() error {
	err := d.Clear()
	if err == nil {
		err = d.own() // root might have written to the journal
	}
	if err == nil {
		err = d.fsys.Remove(d.path(memberFile))
	}
	if err != nil {
		return err
	}
	for _, name := range []string{logDir, tokensDir, ""} {
		if err := os.Remove(d.path(name)); err != nil {
			return err
		}
	}
	return d.syncDirs("..")
}

func (d *Directory) path(name string) string { return filepath.Join(d.dir, sub, name) }

// own gives all files below DIR that belong to root to the owner of DIR. A running server
// can remove files at the same time.
func (d *Directory) own() error {
	info, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || st.Uid == 0 {
		return nil
	}
	root, err := os.OpenRoot(d.dir) // the owner of DIR can create links there
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

// CheckAddress returns an error if other members cannot connect to an address.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("want HOST:PORT, such as 10.0.0.1:11400, not %q", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("want a port from 1 to 65535 in %q", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("want an address in %q that the other members can reach", addr)
	}
	return nil
}

// syncDirs makes the names in directories below DIR/cluster durable.
func (d *Directory) syncDirs(names ...string) error {
	for _, name := range names {
		if err := d.fsys.SyncDir(d.path(name)); err != nil {
			return err
		}
	}
	return nil
}
