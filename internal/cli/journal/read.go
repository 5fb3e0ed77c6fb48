package journal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// attempts is how often to read a journal while a server writes it: cleaning may
// remove a segment in the middle of a reading.
const attempts = 5

// readJournal calls read, which reads all of a journal. If it fails because a server
// is writing there, readJournal calls it again. What the server has written last may
// be missing then.
func readJournal(dir string, read func() error) error {
	return retry(dir, func() error {
		if err := read(); err != nil && !isEnd(dir, err) {
			return err
		}
		return nil
	})
}

// retry calls read until it succeeds, or no server uses the directory, or it has failed
// often enough.
func retry(dir string, read func() error) error {
	for n := 1; ; n++ {
		err := read()
		if err == nil {
			return nil
		}
		holder, lockErr := kit.HolderOf(dir)
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

// isEnd tells whether an error of reading all of a journal is only about the place at
// which a server was writing at that moment: the records after it came after it was
// read.
func isEnd(dir string, err error) bool {
	holder, lockErr := kit.HolderOf(dir)
	if lockErr != nil || holder == "" || !errors.Is(err, wal.ErrCorrupt) {
		return false
	}
	damage, err := findDamage(dir)
	return err == nil && len(damage) == 0
}

// findDamage returns all damage of a journal. The place at which a server is writing
// may look damaged, but only once.
func findDamage(dir string) (damage []wal.Damage, err error) {
	check := func() error {
		damage, err = wal.Check(vfs.OS, dir)
		return err
	}
	if err := retry(dir, check); err != nil || len(damage) == 0 {
		return nil, err
	}
	if holder, err := kit.HolderOf(dir); err != nil || holder == "" {
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

// loadJournal reads a journal into an engine whose clock counts from 1970.
func loadJournal(dir string) (eng *engine.Engine, err error) {
	err = readJournal(dir, func() error {
		eng = engine.New(engine.Options{})
		_, err := journal.Load(vfs.OS, dir, eng, 0)
		return err
	})
	return eng, err
}

// readError says in a line why a journal cannot be read.
func readError(dir string, err error) error {
	if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
		return fmt.Errorf("%s is damaged at offset %d: %s", damage.File, damage.Offset, damage.Reason)
	}
	return fmt.Errorf("directory %s: %s", dir, advice.Plain(err))
}
