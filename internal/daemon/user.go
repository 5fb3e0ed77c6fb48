package daemon

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// An account is a user that the process can become, with all the user's groups. Nil means
// the current user.
type account struct {
	name     string
	uid, gid int
	groups   []int
}

// lookupAccount finds a user by name or number. It returns an error if the process cannot
// become that user, and nil for an empty name.
func lookupAccount(name string) (*account, error) {
	if name == "" {
		return nil, nil
	}
	lookup := user.Lookup
	if strings.Trim(name, "0123456789") == "" {
		lookup = user.LookupId
	}
	u, err := lookup(name)
	if err != nil {
		return nil, exit.WithCode(exit.NoUser, fmt.Errorf("-u: %w", err))
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, exit.WithCode(exit.NoUser, fmt.Errorf("-u %s: groups: %w", name, err))
	}
	var ids []int
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		id, err := strconv.Atoi(text)
		if err != nil {
			return nil, exit.WithCode(exit.NoUser, fmt.Errorf("-u %s: the id of the user or of a group: %w", name, err))
		}
		ids = append(ids, id)
	}
	a := &account{name, ids[0], ids[1], ids[2:]}
	return a, a.attainable()
}

// isCurrent reports whether the process already runs as this user.
func (a *account) isCurrent() bool {
	return a == nil || a.uid != 0 && a.uid == os.Geteuid()
}

func (a *account) attainable() error {
	if a.isCurrent() || os.Geteuid() == 0 {
		return nil
	}
	return exit.WithCode(exit.Privilege, fmt.Errorf("-u %s: only root can switch to another user; start as root, or as %s without -u", a.name, a.name))
}

// own makes the user the owner of a file that root created.
func (a *account) own(path string) error {
	if a.isCurrent() {
		return nil
	}
	if err := os.Lchown(path, a.uid, a.gid); err != nil {
		return exit.WithCode(exit.Privilege, fmt.Errorf("-u %s: %w", a.name, err))
	}
	return nil
}

// dropPrivileges makes the process, with all its threads, run as the user permanently.
// The order matters, because only root can change the groups.
func (a *account) dropPrivileges() error {
	if a.isCurrent() {
		return nil
	}
	err := syscall.Setgroups(a.groups)
	if err == nil {
		err = syscall.Setgid(a.gid)
	}
	if err == nil {
		err = syscall.Setuid(a.uid)
	}
	if err != nil {
		return exit.WithCode(exit.Privilege, fmt.Errorf("-u %s: cannot become this user: %w", a.name, err))
	}
	return nil
}
