package journal

import (
	"fmt"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A condition is a kind of lasting error. The first constant is the worst.
type condition uint8

const (
	broken     condition = iota // the log cannot be written
	lost                        // durable records are lost and not rewritten yet
	full                        // there is no room for a record that was refused
	uncleaned                   // cleaning or rewriting fails
	unprepared                  // creating or removing files in the background fails
	conditions
)

// texts describes the conditions. It contains the log messages at their start and end.
var texts = [conditions]struct{ is, begins, ends string }{
	broken:     {"changes are refused", "journal write failed; refusing changes", "journal recovered; accepting changes"},
	lost:       {"rewriting the damaged journal", "journal damaged; rewriting it from memory", "journal rewritten"},
	full:       {"new jobs are refused", "no space for the journal; refusing new jobs", "journal has space again"},
	uncleaned:  {"journal compaction fails", "journal compaction failed; the journal grows", "journal compaction works again"},
	unprepared: {"cannot create or remove journal files", "cannot create or remove journal files; retrying every second", "creating and removing journal files again"},
}

// health contains the current conditions of a journal.
type health struct {
	log     *slog.Logger
	errs    [conditions]error // nil if the condition is not set
	refused int64             // size of the largest refused record, in bytes
	retry   int64             // time of the next attempt to heal, on the engine's clock
}

// set sets a condition.
func (h *health) set(t condition, err error) {
	if h.errs[t] == nil {
		h.log.Error(texts[t].begins, "err", err)
	}
	h.errs[t] = err
}

// clear clears a condition.
func (h *health) clear(t condition) {
	if h.errs[t] != nil {
		h.errs[t] = nil
		h.log.Info(texts[t].ends)
	}
}

// err returns the error of a condition, or nil.
func (h *health) err(t condition) error {
	if h.errs[t] == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", texts[t].is, h.errs[t])
}

// worst returns the error of the worst condition, or nil.
func (h *health) worst() error {
	for t := range conditions {
		if err := h.err(t); err != nil {
			return err
		}
	}
	return nil
}

// noRoom sets the condition for an error that prevented a record of n bytes, and returns
// the outcome of the command.
func (h *health) noRoom(err error, n int64) engine.Outcome {
	h.refused = max(h.refused, n)
	h.set(full, err)
	if wal.NoRoom(err) {
		return engine.OutOfMemory
	}
	return engine.Failed
}

// room clears the condition once there is room for the largest refused record. A
// successful smaller put must not clear it: the error would come and go.
func (h *health) room() {
	h.clear(full)
	h.refused = 0
}

// refusesJobs reports whether a record was refused and there is still no space for the
// largest refused one.
func (h *health) refusesJobs() bool { return h.errs[full] != nil }

// Refuses reports whether changes fail, or whether new jobs were refused and there is
// still no space for the largest.
func (j *Journal) Refuses() bool { return j.files.Err() != nil || j.health.refusesJobs() }

// IsFull reports whether new jobs are refused for lack of space.
func (j *Journal) IsFull() bool { return j.health.refusesJobs() }
