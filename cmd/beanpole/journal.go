package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const journalLong = `Look at a journal, the directory that "beanpole -b DIR" keeps its jobs in, mend
it, put two together, or turn it into files of beanstalkd. doc/journal.md explains what is in it.`

const journalExample = `  beanpole journal check /var/lib/beanpole
  beanpole journal dump --live --tube mail /var/lib/beanpole
  beanpole journal repair /var/lib/beanpole
  beanpole journal import /var/lib/beanpole /var/lib/beanstalkd
  beanpole journal export /var/lib/beanpole --beanstalkd /var/lib/beanstalkd`

// journalExits is the end of the help of each command.
const journalExits = `
Exit codes: 0 all is well, 1 the journal is damaged or something failed, 5 the
command line is wrong, 10 the directory cannot be used.`

func newJournal() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "journal COMMAND DIR",
		Short:                 "check, dump, repair, import or export a journal",
		Long:                  journalLong,
		Example:               journalExample,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs, // RunE says what is wrong with them
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownArgument(cmd, args)
		},
	}
	cmd.AddCommand(newJournalCheck(), newJournalDump(), newJournalRepair(), newJournalImport(), newJournalExport())
	return cmd
}

// oneDirectory is for commands that take a directory and options.
func oneDirectory(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError("which directory? (see: %s --help)", cmd.CommandPath())
	case len(args) > 1:
		return usageError("one directory only, not %q too (see: %s --help)", args[1], cmd.CommandPath())
	}
	return nil
}

// checkDirectory makes sure that there is a directory that can be read.
func checkDirectory(dir string) error {
	d, err := os.OpenFile(dir, syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) // which waits for nobody, should it be a FIFO
	if err == nil {
		_, err = d.Readdirnames(1)
		d.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return &exitError{exitJournal, err}
	}
	return nil
}

// holderOf says who uses a journal's directory; empty: nobody. It takes no lock
// itself, so that it is in nobody's way, and makes no file.
func holderOf(dir string) (string, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), syscall.O_NONBLOCK, 0) // which waits for nobody, should it be a FIFO
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", &exitError{exitJournal, err}
	}
	defer f.Close()
	// To read would be hindered by a server's lock, which is one for writing.
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	switch err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); {
	case err != nil:
		return "", &exitError{exitJournal, fmt.Errorf("ask who locks %s: %w", f.Name(), err)}
	case lock.Type == syscall.F_UNLCK:
		return "", nil
	case lock.Pid <= 0:
		return "a process of another container", nil
	}
	return fmt.Sprintf("process %d", lock.Pid), nil
}

// lockJournal takes the lock of a journal for a tool that needs it for itself.
// Until it is closed holderOf must not be called: to close any descriptor of
// the file gives the lock up.
func lockJournal(dir string) (io.Closer, error) {
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("directory %s: %w (stop the server first)", dir, err)
	}
	if err != nil {
		return nil, &exitError{exitJournal, err}
	}
	return lock, nil
}

// attempts is how often a journal is read while a server writes it: cleaning
// may remove a segment between two looks.
const attempts = 5

// readJournal calls read, which reads all of a journal, again until it succeeds
// or is not to blame on a server that is writing. The newest records of such a
// one may be missing.
func readJournal(dir string, read func() error) error {
	return retry(dir, func() error {
		if err := read(); err != nil && !isEnd(dir, err) {
			return err
		}
		return nil
	})
}

func retry(dir string, read func() error) error {
	for n := 1; ; n++ {
		err := read()
		if err == nil {
			return nil
		}
		holder, lockErr := holderOf(dir)
		switch {
		case lockErr != nil:
			return lockErr
		case holder == "":
			return readError(dir, err)
		case n == attempts:
			return fmt.Errorf("%w (%s is writing there: try again, or look at a copy)", readError(dir, err), holder)
		}
	}
}

// isEnd tells whether an error of reading all of a journal is only the place
// that a server was writing just then. By the time that what follows it was
// looked at, there was more.
func isEnd(dir string, err error) bool {
	holder, lockErr := holderOf(dir)
	if lockErr != nil || holder == "" || !errors.Is(err, wal.ErrCorrupt) {
		return false
	}
	damage, err := findDamage(dir)
	return err == nil && len(damage) == 0
}

// findDamage returns all damage of a journal. What a server is writing at this
// moment may look damaged, but not twice in the same place.
func findDamage(dir string) (damage []wal.Damage, err error) {
	check := func() error {
		damage, err = wal.Check(vfs.OS, dir)
		return err
	}
	if err := retry(dir, check); err != nil || len(damage) == 0 {
		return nil, err
	}
	if holder, err := holderOf(dir); err != nil || holder == "" {
		return damage, err
	}
	first := damage
	if err := retry(dir, check); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(damage, func(d wal.Damage) bool {
		return !slices.ContainsFunc(first, func(e wal.Damage) bool { return d.File == e.File && d.Offset == e.Offset })
	}), nil
}

// readError says in a line why a journal cannot be read.
func readError(dir string, err error) error {
	if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
		return fmt.Errorf("%s is damaged at offset %d: %s", damage.File, damage.Offset, damage.Reason)
	}
	return fmt.Errorf("directory %s: %s", dir, plain(err))
}
