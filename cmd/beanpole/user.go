package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// An identity is a user that the process can become, with the primary group
// and all others of that user. Nil is the one that it has.
type identity struct {
	name     string
	uid, gid int
	groups   []int
}

// lookupIdentity finds a user by name or number. It fails if the process could
// not become that user. Empty is nil.
func lookupIdentity(name string) (*identity, error) {
	if name == "" {
		return nil, nil
	}
	lookup := user.Lookup
	if strings.Trim(name, "0123456789") == "" {
		lookup = user.LookupId
	}
	u, err := lookup(name)
	if err != nil {
		if isUnknown(err) {
			return nil, command.WithCode(command.ExitNoUser, fmt.Errorf("-u %s: there is no such user", name))
		}
		return nil, command.WithCode(command.ExitLookup, fmt.Errorf("-u %s: %w", name, err))
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, command.WithCode(command.ExitLookup, fmt.Errorf("-u %s: groups: %w", name, err))
	}
	id := &identity{name: name}
	if id.uid, err = strconv.Atoi(u.Uid); err != nil {
		return nil, command.WithCode(command.ExitLookup, fmt.Errorf("-u %s: user id: %w", name, err))
	}
	if id.gid, err = strconv.Atoi(u.Gid); err != nil {
		return nil, command.WithCode(command.ExitLookup, fmt.Errorf("-u %s: group id: %w", name, err))
	}
	for _, g := range groups {
		gid, err := strconv.Atoi(g)
		if err != nil {
			return nil, command.WithCode(command.ExitLookup, fmt.Errorf("-u %s: group id: %w", name, err))
		}
		id.groups = append(id.groups, gid)
	}
	return id, id.attainable()
}

func isUnknown(err error) bool {
	_, name := errors.AsType[user.UnknownUserError](err)
	_, number := errors.AsType[user.UnknownUserIdError](err)
	return name || number
}

// isCurrent tells whether the process is this user already.
func (id *identity) isCurrent() bool {
	return id == nil || id.uid != 0 && id.uid == os.Geteuid()
}

func (id *identity) attainable() error {
	if id.isCurrent() || os.Geteuid() == 0 {
		return nil
	}
	return command.WithCode(command.ExitPrivilege, fmt.Errorf("-u %s: only root can become another user; start as root, or as %s without -u", id.name, id.name))
}

// own gives the user the socket files, which root has made.
func (id *identity) own(addrs []server.Address) error {
	if id.isCurrent() {
		return nil
	}
	for _, a := range addrs {
		if a.Path == "" {
			continue
		}
		if err := os.Lchown(a.Path, id.uid, id.gid); err != nil {
			return command.WithCode(command.ExitPrivilege, fmt.Errorf("-u %s: %w", id.name, err))
		}
	}
	return nil
}

// assume makes the process, with all its threads, run as the user, for good.
// The order matters: only root may change the groups.
func (id *identity) assume() error {
	if id.isCurrent() {
		return nil
	}
	err := syscall.Setgroups(id.groups)
	if err == nil {
		err = syscall.Setgid(id.gid)
	}
	if err == nil {
		err = syscall.Setuid(id.uid)
	}
	if err != nil {
		return command.WithCode(command.ExitPrivilege, fmt.Errorf("-u %s: cannot become this user: %w", id.name, err))
	}
	return nil
}
