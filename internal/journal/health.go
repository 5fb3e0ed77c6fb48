package journal

import (
	"fmt"
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A trouble is a kind of lasting error. The first is the worst.
type trouble uint8

const (
	broken     trouble = iota // the log cannot be written
	lost                      // records that were durable are lost, and not rewritten yet
	full                      // the disk has no room for a record that was refused
	stuck                     // room cannot be made, for another reason
	uncleaned                 // the log cannot be cleaned or rewritten
	unprepared                // files could not be made or removed in the background
	troubles
)

// texts say what is wrong, and are logged when a trouble begins and when it ends.
var texts = [troubles]struct{ is, begins, ends string }{
	broken:     {"changes are refused", "the journal cannot be written: changes are refused until it can", "the journal is written again, and complete"},
	lost:       {"the journal is damaged, and is being rewritten", "the journal is damaged: all jobs are in memory, and the whole journal is rewritten", "the whole journal was rewritten"},
	full:       {"new jobs are refused", "the journal has no room: new jobs are refused until there is", "the journal has room again"},
	stuck:      {"new jobs are refused", "the journal cannot make room: new jobs are refused until it can", "the journal has room again"},
	uncleaned:  {"the journal cannot be cleaned", "the journal cannot be cleaned and will grow", "the journal is cleaned again"},
	unprepared: {"files cannot be made or removed", "the journal cannot make, mark or remove files in the background; it tries again every second", "the journal's files are in order again"},
}

// health has what is wrong with a journal.
type health struct {
	log     *slog.Logger
	errs    [troubles]error // nil: all is well
	refused int64           // bytes; size of the largest record for which there was no room
	retry   int64           // when to try to heal, on the engine's clock
}

// has notes an error.
func (h *health) has(t trouble, err error) {
	if h.errs[t] == nil {
		h.log.Error(texts[t].begins, "err", err)
	}
	h.errs[t] = err
}

// ended notes that a trouble, if there was one, is over.
func (h *health) ended(t trouble) {
	if h.errs[t] != nil {
		h.errs[t] = nil
		h.log.Info(texts[t].ends)
	}
}

// err returns the error of a trouble; nil if there is none.
func (h *health) err(t trouble) error {
	if h.errs[t] == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", texts[t].is, h.errs[t])
}

// worst returns the error of the worst trouble; nil if all is well.
func (h *health) worst() error {
	for t := range troubles {
		if err := h.err(t); err != nil {
			return err
		}
	}
	return nil
}

// noRoom notes why there was no room for a record of n bytes, and returns the outcome: a
// full disk and a failing one are answered differently.
func (h *health) noRoom(err error, n int64) engine.Outcome {
	is, was, outcome := full, stuck, engine.OutOfMemory
	if !wal.NoRoom(err) {
		is, was, outcome = stuck, full, engine.Failed
	}
	h.errs[was], h.refused = nil, max(h.refused, n)
	h.has(is, err)
	return outcome
}

// room notes that there is room for the largest record that was refused. A put that finds
// room is not enough: the error would come and go with each one.
func (h *health) room() {
	h.ended(full)
	h.ended(stuck)
	h.refused = 0
}

// refusesJobs reports whether there was no room for a record, and still is not for the
// largest.
func (h *health) refusesJobs() bool { return h.errs[full] != nil || h.errs[stuck] != nil }

// Refuses reports whether new jobs were refused, and there is no room yet for the
// largest.
func (j *Journal) Refuses() bool { return j.files.Err() != nil || j.health.refusesJobs() }

// IsFull reports whether they were refused because room cannot be made for them.
func (j *Journal) IsFull() bool { return j.health.refusesJobs() }
