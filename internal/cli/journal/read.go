package journal

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// attempts is the maximum number of attempts to read a journal while a server writes it.
// The server can remove a segment during an attempt.
const attempts = 5

// readJournal calls read, which reads a whole journal. While a server uses the directory,
// it repeats a read that failed, up to attempts times. The newest records can be missing.
func readJournal(dir string, read func() error) error {
	for n := 1; ; n++ {
		err := read()
		if err == nil {
			return nil
		}
		holder, lockErr := advice.LockOwner(dir)
		switch {
		case lockErr != nil:
			return lockErr
		case holder == "":
			return readError(dir, err)
		case n == attempts:
			return fmt.Errorf("%w (%s is writing there: try again, or read a copy)", readError(dir, err), holder)
		}
	}
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

// readError returns the reason why a journal cannot be read, as one line.
func readError(dir string, err error) error {
	if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
		return fmt.Errorf("%s is damaged at offset %d: %s", damage.File, damage.Offset, damage.Reason)
	}
	return fmt.Errorf("directory %s: %s", dir, advice.Plain(err))
}
