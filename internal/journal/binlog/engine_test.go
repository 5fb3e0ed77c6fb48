package binlog

import (
	"bytes"

	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// readEngine reads a directory into an engine.
func readEngine(tb rapid.TB, fsys vfs.FS, dir string, opt Options) (*engine.Engine, Report) {
	tb.Helper()
	eng := engine.New(engine.Options{})
	report, err := Read(fsys, dir, opt, func(c engine.Change) error {
		eng.Restore(c)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := eng.Check(); err != nil {
		tb.Fatal(err)
	}
	if eng.LastID() != report.LastID {
		tb.Fatalf("the engine's last id is %d, the report's %d", eng.LastID(), report.LastID)
	}
	return eng, report
}

// readWhole is readEngine for a directory that must not be damaged.
func readWhole(tb rapid.TB, fsys vfs.FS, dir string, opt Options) (*engine.Engine, Report) {
	tb.Helper()
	eng, report := readEngine(tb, fsys, dir, opt)
	if len(report.Damage) > 0 {
		tb.Errorf("damage: %q", report.Damage)
	}
	return eng, report
}

func jobsOf(eng *engine.Engine) map[uint64]engine.Change {
	jobs := make(map[uint64]engine.Change)
	for c := range eng.Snapshots {
		c.Body, c.Slot = bytes.Clone(c.Body), 0 // the slot in another engine differs
		jobs[c.ID] = c
	}
	return jobs
}

func engineOf(changes ...engine.Change) *engine.Engine {
	eng := engine.New(engine.Options{})
	for _, c := range changes {
		eng.Restore(c)
	}
	return eng
}
