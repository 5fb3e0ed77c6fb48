package cluster

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tear leaves the start of a write after the last record in a node's log of entries. The
// node must be down.
func (m *node) tear() {
	names, err := m.disk.List(LogDir(dir))
	m.sim.must(err)
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if !strings.HasSuffix(name, ".wal") {
			continue
		}
		f, err := m.disk.OpenWrite(filepath.Join(LogDir(dir), name))
		m.sim.must(err)
		size, _, err := f.Stat()
		m.sim.must(err)
		b := make([]byte, size)
		_, err = f.ReadAt(b, 0)
		m.sim.must(err)
		if end := len(bytes.TrimRight(b, "\x00")); end > 200 { // otherwise, nothing was written to it
			_, err = f.WriteAt([]byte("torn"), int64(end+16))
			m.sim.must(err)
			m.sim.must(f.Sync())
			m.sim.must(f.Close())
			return
		}
		m.sim.must(f.Close())
	}
}

// All members lose power during a write, and one of them is lost for good. The other two
// continue, and have all acknowledged changes.
func TestTornEnds(t *testing.T) {
	for lost := range 3 {
		inSimulation(t, 3, func(t *testing.T, sim *simulation) {
			sim.mustPut(nil, 20, "a job")
			for _, m := range sim.nodes {
				m.kill(true)
				m.tear()
			}
			for i, m := range sim.nodes {
				if i != lost {
					m.boot()
				}
			}
			sim.mustPut(sim.leader(), 1, "afterwards")
		})
	}
}
