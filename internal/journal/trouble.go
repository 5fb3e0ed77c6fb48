package journal

import (
	"log/slog"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

// trouble says each kind of trouble once when it begins and once when it ends.
type trouble struct {
	full    bool
	broken  bool
	growing bool
	behind  bool  // files could not be made or removed in the background
	retry   int64 // when to try to heal, on the engine's clock
}

func (t *trouble) noRoom(log *slog.Logger, err error) {
	if !t.full {
		t.full = true
		log.Error("the journal has no room: new jobs are refused until there is", "err", err)
	}
}

func (t *trouble) room(log *slog.Logger) {
	if t.full {
		t.full = false
		log.Info("the journal has room again")
	}
}

func (t *trouble) failed(log *slog.Logger, err error) {
	if !t.broken {
		t.broken = true
		log.Error("the journal cannot be written: changes are refused until it can", "err", err)
	}
}

func (t *trouble) healed(log *slog.Logger) {
	if t.broken {
		t.broken = false
		log.Info("the journal is written again, and complete")
	}
}

func (t *trouble) notCleaned(log *slog.Logger, oldest wal.Segment, err error) {
	if !t.growing {
		t.growing = true
		log.Error("the journal cannot be cleaned and will grow", "segment", wal.FileName(oldest.Sequence), "err", err)
	}
}

func (t *trouble) cleaned(log *slog.Logger) {
	if t.growing {
		t.growing = false
		log.Info("the journal is cleaned again")
	}
}

// notPrepared is not for a full disk, of which noRoom tells when that matters.
func (t *trouble) notPrepared(log *slog.Logger, err error) {
	if !t.behind && !wal.NoRoom(err) {
		t.behind = true
		log.Error("the journal cannot make, mark or remove files in the background; it tries again every second", "err", err)
	}
}

func (t *trouble) prepared(log *slog.Logger) {
	if t.behind {
		t.behind = false
		log.Info("the journal's files are in order again")
	}
}
