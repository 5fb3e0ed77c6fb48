package cluster

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// tear leaves the beginning of a write after the last record of a machine's log of entries. It is down.
func (m *machine) tear() {
	names, err := m.disk.List(LogDir(dir))
	m.w.must(err)
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if !strings.HasSuffix(name, ".wal") {
			continue
		}
		f, err := m.disk.OpenWrite(filepath.Join(LogDir(dir), name))
		m.w.must(err)
		size, err := f.Size()
		m.w.must(err)
		b := make([]byte, size)
		_, err = f.ReadAt(b, 0)
		m.w.must(err)
		if end := len(bytes.TrimRight(b, "\x00")); end > 200 { // else nothing was written to it
			_, err = f.WriteAt([]byte("torn"), int64(end+16))
			m.w.must(err)
			m.w.must(f.Sync())
			m.w.must(f.Close())
			return
		}
		m.w.must(f.Close())
	}
}

// A member whose log has lost its end takes no part in elections until it has what a leader has, also when it is started
// again meanwhile, and finds no torn end any more.
func TestTornOutlivesStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "a job")
		w.must(err)
		time.Sleep(time.Second)
		for _, m := range w.machines {
			m.kill(true)
		}
		m := w.machines[1]
		m.tear()
		for range 3 {
			m.boot()
			torn := false
			if !m.member.inLoop(func() { torn = m.member.raft.core.Torn() }) || !torn || !m.member.log.State().Torn {
				w.fatalf("the member has forgotten that its log lost its end")
			}
			m.kill(true)
		}
		for _, m := range w.machines {
			m.boot()
		}
		w.until("the member has what the leader has", func() bool { return !m.member.log.State().Torn })
		m.kill(false)
		m.boot()
		if m.member.log.State().Torn {
			w.fatalf("the member has forgotten that it lacks nothing")
		}
		w.audit()
		w.close()
	})
}
