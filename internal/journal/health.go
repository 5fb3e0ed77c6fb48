package journal

import (
	"fmt"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

// health has what is wrong with a journal. It logs each kind of error once when it begins
// and once when it ends, and keeps it in between.
type health struct {
	full         error // why there is no room; nil if there is
	refused      int64 // bytes; size of the largest record for which there was no room
	broken       error // why the log cannot be written; nil if it can
	missing      error // what is lost on the disk and not rewritten yet; nil if nothing
	notCleanable error // why the log cannot be cleaned or rewritten; nil if it can
	notMade      error // why files could not be made or removed in the background
	retry        int64 // when to try to heal, on the engine's clock
}

// refusal says why changes, or new jobs, are refused; nil: they are not.
func (h *health) refusal() error {
	switch {
	case h.broken != nil:
		return fmt.Errorf("changes are refused: %w", h.broken)
	case h.full != nil:
		return fmt.Errorf("new jobs are refused: %w", h.full)
	}
	return nil
}

// worst returns the worst error, or nil if all is well.
func (h *health) worst() error {
	switch {
	case h.broken != nil:
		return h.refusal()
	case h.missing != nil:
		return fmt.Errorf("the journal is damaged, and is being rewritten: %w", h.missing)
	case h.full != nil:
		return h.refusal()
	case h.notCleanable != nil:
		return fmt.Errorf("the journal cannot be cleaned: %w", h.notCleanable)
	case h.notMade != nil:
		return fmt.Errorf("files cannot be made or removed: %w", h.notMade)
	}
	return nil
}

// noRoom notes that there was no room for a record of n bytes.
func (h *health) noRoom(log *slog.Logger, err error, n int64) {
	before := h.full
	h.full, h.refused = err, max(h.refused, n)
	switch {
	case before != nil && wal.NoRoom(before) == wal.NoRoom(err):
	case wal.NoRoom(err):
		log.Error("the journal has no room: new jobs are refused until there is", "err", err)
	default:
		log.Error("the journal cannot make room: new jobs are refused until it can", "err", err)
	}
}

// room notes that there is room for the largest record that was refused. A put that finds
// room is not enough: the error would come and go with each one.
func (h *health) room(log *slog.Logger) {
	if h.full != nil {
		h.full, h.refused = nil, 0
		log.Info("the journal has room again")
	}
}

func (h *health) failed(log *slog.Logger, err error) {
	if h.broken == nil {
		log.Error("the journal cannot be written: changes are refused until it can", "err", err)
	}
	h.broken = err
}

func (h *health) healed(log *slog.Logger) {
	if h.broken != nil {
		h.broken = nil
		log.Info("the journal is written again, and complete")
	}
}

func (h *health) notCleaned(log *slog.Logger, err error) {
	if h.notCleanable == nil {
		log.Error("the journal cannot be cleaned and will grow", "err", err)
	}
	h.notCleanable = err
}

func (h *health) cleaned(log *slog.Logger) {
	if h.notCleanable != nil {
		h.notCleanable = nil
		log.Info("the journal is cleaned again")
	}
}

// notPrepared notes that the background could not make or remove files. It ignores a
// full disk: noRoom reports that when it matters.
func (h *health) notPrepared(log *slog.Logger, err error) {
	if wal.NoRoom(err) {
		return
	}
	if h.notMade == nil {
		log.Error("the journal cannot make, mark or remove files in the background; it tries again every second", "err", err)
	}
	h.notMade = err
}

func (h *health) prepared(log *slog.Logger) {
	if h.notMade != nil {
		h.notMade = nil
		log.Info("the journal's files are in order again")
	}
}

// damaged notes that records which were durable are lost.
func (h *health) damaged(log *slog.Logger, err error) {
	if h.missing == nil {
		log.Error("the journal is damaged: all jobs are in memory, and the whole journal is rewritten", "err", err)
	}
	h.missing = err
}

func (h *health) rewritten(log *slog.Logger) {
	h.missing, h.notCleanable = nil, nil
	log.Info("the whole journal was rewritten")
}

// Refuses reports whether new jobs were refused, and there is no room yet for the
// largest.
func (j *Journal) Refuses() bool { return j.failure() != nil || j.health.full != nil }

// IsFull reports whether they were refused because the disk has no room for them.
func (j *Journal) IsFull() bool { return j.health.full != nil }
