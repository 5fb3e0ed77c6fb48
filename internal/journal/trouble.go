package journal

import (
	"fmt"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

// trouble logs each kind of trouble once when it begins and once when it ends, and
// holds the error in between.
type trouble struct {
	full         error // why there is no room; nil if there is
	refused      int64 // bytes; size of the largest record for which there was no room
	broken       error // why the log cannot be written; nil if it can
	missing      error // which files are lost; nil if none
	notSeen      error // why files could not be looked for; nil if they could
	notCleanable error // why the log cannot be cleaned; nil if it can
	notMade      error // why files could not be made or removed in the background
	retry        int64 // when to try to heal, on the engine's clock
}

// worst returns the worst trouble, or nil if all is well.
func (t *trouble) worst() error {
	switch {
	case t.broken != nil:
		return fmt.Errorf("changes are refused: %w", t.broken)
	case t.missing != nil:
		return t.missing
	case t.notSeen != nil:
		return t.notSeen
	case t.full != nil:
		return fmt.Errorf("new jobs are refused: %w", t.full)
	case t.notCleanable != nil:
		return fmt.Errorf("the journal cannot be cleaned: %w", t.notCleanable)
	case t.notMade != nil:
		return fmt.Errorf("files cannot be made or removed: %w", t.notMade)
	}
	return nil
}

// noRoom notes that there was no room for a record of n bytes.
func (t *trouble) noRoom(log *slog.Logger, err error, n int64) {
	before := t.full
	t.full, t.refused = err, max(t.refused, n)
	switch {
	case before != nil && wal.NoRoom(before) == wal.NoRoom(err):
	case wal.NoRoom(err):
		log.Error("the journal has no room: new jobs are refused until there is", "err", err)
	default:
		log.Error("the journal cannot make room: new jobs are refused until it can", "err", err)
	}
}

// room notes that there is room for a record of n bytes. The trouble ends only if none
// of that size was refused: with jobs of several sizes it would come and go with each
// put otherwise.
func (t *trouble) room(log *slog.Logger, n int64) {
	if t.full != nil && n >= t.refused {
		t.full, t.refused = nil, 0
		log.Info("the journal has room again")
	}
}

func (t *trouble) failed(log *slog.Logger, err error) {
	if t.broken == nil {
		log.Error("the journal cannot be written: changes are refused until it can", "err", err)
	}
	t.broken = err
}

func (t *trouble) healed(log *slog.Logger) {
	if t.broken != nil {
		t.broken = nil
		log.Info("the journal is written again, and complete")
	}
}

func (t *trouble) notCleaned(log *slog.Logger, oldest wal.Segment, err error) {
	if t.notCleanable == nil {
		log.Error("the journal cannot be cleaned and will grow", "segment", wal.FileName(oldest.Sequence), "err", err)
	}
	t.notCleanable = err
}

func (t *trouble) cleaned(log *slog.Logger) {
	if t.notCleanable != nil {
		t.notCleanable = nil
		log.Info("the journal is cleaned again")
	}
}

// notPrepared notes that the background could not make or remove files. It ignores a
// full disk: noRoom reports that when it matters.
func (t *trouble) notPrepared(log *slog.Logger, err error) {
	if wal.NoRoom(err) {
		return
	}
	if t.notMade == nil {
		log.Error("the journal cannot make, mark or remove files in the background; it tries again every second", "err", err)
	}
	t.notMade = err
}

func (t *trouble) prepared(log *slog.Logger) {
	if t.notMade != nil {
		t.notMade = nil
		log.Info("the journal's files are in order again")
	}
}

// lost notes that files of segments are lost, and perhaps why they cannot be
// written anew.
func (t *trouble) lost(log *slog.Logger, err error) {
	if t.missing == nil {
		log.Error("files of the journal are lost: all jobs are in memory, and are written anew when that is possible", "err", err)
	}
	t.missing = err
}

// notLooked notes that it is not known whether the files are there.
func (t *trouble) notLooked(log *slog.Logger, err error) {
	if t.notSeen == nil {
		log.Error("the journal cannot look for its files; it tries again every few seconds", "err", err)
	}
	t.notSeen = err
}

func (t *trouble) found(log *slog.Logger) {
	if t.missing != nil || t.notSeen != nil {
		t.missing, t.notSeen = nil, nil
		log.Info("the files of the journal are all there again")
	}
}
