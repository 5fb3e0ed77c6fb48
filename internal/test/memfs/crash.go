package memfs

import (
	"maps"
	"math/rand/v2"
)

const sectorSize = 512

// A luck defines the share of unsynced data that survives a power cut. It is the same for
// all files, so that the extremes occur: no data survives, or all of it.
type luck struct {
	keep float64 // probability that a change is on the disk
	torn float64 // probability that a sector is torn
}

func drawLuck(rng *rand.Rand) luck {
	switch rng.IntN(6) {
	case 0:
		return luck{keep: 0}
	case 1:
		return luck{keep: 1}
	case 2:
		return luck{keep: 0.5, torn: 0.1}
	case 3:
		return luck{keep: 0.95}
	}
	return luck{keep: rng.Float64(), torn: 0.02}
}

// names draws the names in a directory: the durable names, with each later change applied
// or not.
func (l luck) names(rng *rand.Rand, d *dir) map[string]*inode {
	names := maps.Clone(d.durable)
	for _, c := range d.pending {
		if rng.Float64() < l.keep {
			c.apply(names)
		}
	}
	return names
}

// contents draws the remaining contents of a file.
//
// Each sector is drawn independently and reflects a prefix of the edits. A disk that
// writes cached pages at any time behaves in this way: within a sector, an older edit
// cannot be missing if a newer edit is present.
func (l luck) contents(rng *rand.Rand, n *inode) *inode {
	size := int64(len(n.durable))
	longest := size
	for _, e := range n.pending {
		longest = max(longest, e.size)
		if rng.Float64() < l.keep {
			size = e.size
		}
	}
	data := make([]byte, longest)
	copy(data, n.durable)
	if len(n.pending) > 0 {
		for off := int64(0); off < longest; off += sectorSize {
			l.sector(rng, n, data[off:min(off+sectorSize, longest)], off)
		}
	}
	data = data[:size:size]
	after := &inode{data: data, durable: append([]byte(nil), data...)}
	for b := int64(0); b*blockSize < size; b++ {
		after.allocated = append(after.allocated, b < int64(len(n.allocated)) && n.allocated[b])
	}
	return after
}

// sector draws the sector of a file at off. On entry, sector contains the durable bytes.
func (l luck) sector(rng *rand.Rand, n *inode, sector []byte, off int64) {
	end := off + int64(len(sector))
	for _, e := range n.pending {
		change, at := e.within(off, end)
		if change == nil {
			continue
		}
		if rng.Float64() >= l.keep {
			return
		}
		if rng.Float64() < l.torn {
			copy(sector[at:], change[:rng.IntN(len(change))])
			return
		}
		copy(sector[at:], change)
	}
}

// within returns the bytes that an edit writes within off..end, and their position
// relative to off. change is nil if there are no such bytes.
func (e edit) within(off, end int64) (change []byte, at int64) {
	if e.data == nil {
		if e.size >= end {
			return nil, 0
		}
		from := max(off, e.size)
		return make([]byte, end-from), from - off
	}
	from, to := max(off, e.off), min(end, e.off+int64(len(e.data)))
	if from >= to {
		return nil, 0
	}
	return e.data[from-e.off : to-e.off], from - off
}
