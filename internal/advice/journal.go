// Package advice adds remedies to errors about the directory of a journal or of a member.
// The server and the commands print them.
package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Explain adds the remedy to an error about the directory of a journal.
func Explain(dir string, err error) error {
	if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
		return fmt.Errorf("the journal is damaged: %s at offset %d: %s (nothing was changed; 'beanpole journal check %s' shows all damage; %s)",
			damage.File, damage.Offset, damage.Reason, dir, Repair(dir))
	}
	hint := ""
	mixed := errors.Is(err, journal.ErrMixed)
	switch {
	case mixed && IsMember(dir):
		hint = " (nothing was changed; this is a cluster member, which imports no files: move those files to another directory)"
	case mixed:
		hint = " (nothing was changed; to keep the jobs of both, move those files to another directory, THERE, start a second server " +
			"with 'beanpole -b THERE -p PORT', and run 'beanpole export --addr :PORT | beanpole import')"
	case errors.Is(err, journal.ErrOfMember):
		hint = fmt.Sprintf(", and %s is missing (nothing was changed; %s)", filepath.Join(dir, "cluster"), directory.Save(dir))
	case errors.Is(err, wal.ErrVersion):
		hint = " (nothing was changed; start that version there, 'beanpole export' the queue, and 'beanpole import' it into a server with another directory)"
	case errors.Is(err, journal.ErrAdopting):
		hint = " (put the files back; or remove beanpole.adopting if you do not need their jobs)"
	case errors.Is(err, vfs.ErrLocked):
		hint = " (another beanpole or beanstalkd uses this directory; stop it, or choose another)"
	case errors.Is(err, fs.ErrNotExist) && isThere(dir):
		hint = " (perhaps a dangling link; nothing was changed; move it away)"
	case errors.Is(err, fs.ErrNotExist):
		hint = " (the directory must exist and belong to the user that the server runs as)"
	case errors.Is(err, fs.ErrPermission):
		hint = " (the directory and its files must belong to the user that the server runs as)"
	case errors.Is(err, syscall.ENOTDIR):
		hint = " (it must be a directory)"
	case errors.Is(err, syscall.ENOSPC):
		hint = " (free disk space)"
	case errors.Is(err, vfs.ErrNotRegular):
		hint = " (nothing was changed; move it away)"
	}
	prefix := fmt.Sprintf("directory %s: ", dir) // errors of package directory already have this prefix
	return errors.New(prefix + strings.TrimPrefix(Plain(err), prefix) + hint)
}

// Plain returns the text of an error as one line, without the names of packages, which
// are for developers. Joined errors have one line each. Paths can contain any characters.
func Plain(err error) string {
	lines := strings.FieldsFunc(err.Error(), unicode.IsControl)
	for i, text := range lines {
		text = ": " + text
		for _, name := range []string{"journal", "wal", "binlog"} {
			text = strings.ReplaceAll(text, ": "+name+": ", ": ")
		}
		lines[i] = strings.TrimPrefix(text, ": ")
	}
	return strings.Join(lines, "; ")
}

// isThere reports whether a path exists, following links.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Repair returns the remedy for a damaged journal.
func Repair(dir string) string {
	if IsMember(dir) {
		return Rejoin(dir)
	}
	return fmt.Sprintf("'beanpole journal repair %s TO' writes a new journal with the intact records", dir)
}

// Rejoin returns the remedy for the damaged journal of a member.
func Rejoin(dir string) string {
	return fmt.Sprintf("the other members have all of it: 'beanpole cluster rejoin %s'", dir)
}
