package history

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
)

const (
	magic     = "beanpole history "
	header    = magic + "1\n"
	mark      = "\xb5\x1e"
	blockHead = len(mark) + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Point contains the values of a tube or, if the name is empty, of the whole server.
type Point struct {
	Tube string
	Values
}

// A segment is a file, or the part of the history that will become a file.
type segment struct {
	kind   Kind
	data   []byte // contents of the file; only appended to
	blocks []block
	begin  int64 // time of the first block
	sealed bool  // whether no more blocks are added
	tubes  []string
	number map[string]int // number of a tube in tubes
}

// A block contains the values of all tubes at a given time, or a change.
type block struct {
	time     int64 // in ms; for points, the end of the period
	off, end int   // range of the points or text in data
}

func newSegment(kind Kind, begin int64) *segment {
	return &segment{kind: kind, data: []byte(header), begin: begin, number: make(map[string]int)}
}

// last returns the time of the last block.
func (g *segment) last() int64 {
	if len(g.blocks) == 0 {
		return g.begin
	}
	return g.blocks[len(g.blocks)-1].time
}

// add appends a block with a payload.
func (g *segment) add(payload []byte) {
	at := len(g.data)
	g.data = append(g.data, mark...)
	g.data = binary.LittleEndian.AppendUint32(g.data, uint32(len(payload)))
	g.data = binary.LittleEndian.AppendUint32(g.data, checksum(payload))
	g.data = append(g.data, payload...)
	g.index(at)
}

func checksum(payload []byte) uint32 {
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, payload)
}

func (g *segment) addText(time int64, text []byte) {
	g.add(append(binary.AppendVarint(nil, time), text...))
}

// addPoints appends a block with points. It reorders them.
func (g *segment) addPoints(time int64, points []Point) {
	b := binary.AppendVarint(nil, time)
	var names []byte
	fresh := make(map[string]int)
	number := func(tube string) int {
		if n, ok := g.number[tube]; ok {
			return n
		}
		return fresh[tube]
	}
	for _, p := range points {
		_, known := g.number[p.Tube]
		if _, again := fresh[p.Tube]; !known && !again {
			fresh[p.Tube] = len(g.tubes) + len(fresh)
			names = append(binary.AppendUvarint(names, uint64(len(p.Tube))), p.Tube...)
		}
	}
	b = append(binary.AppendUvarint(b, uint64(len(fresh))), names...)
	slices.SortFunc(points, func(p, q Point) int { return cmp.Compare(number(p.Tube), number(q.Tube)) })
	before := 0
	for i := range points {
		n := number(points[i].Tube)
		b = binary.AppendUvarint(b, uint64(n-before))
		before = n
		at := len(b)
		b = points[i].append(append(b, 0))
		b[at] = byte(len(b) - at - 1) // at most 3 + 20*10 bytes
	}
	g.add(b)
}

// index adds the block at an offset of data to blocks. It returns the offset after the
// block, or 0 if it is invalid.
func (g *segment) index(at int) (end int) {
	b := g.data[at:]
	if len(b) < blockHead || string(b[:len(mark)]) != mark {
		return 0
	}
	size := int64(binary.LittleEndian.Uint32(b[2:]))
	if size > int64(len(b)-blockHead) {
		return 0
	}
	payload := b[blockHead : blockHead+int(size)]
	if checksum(payload) != binary.LittleEndian.Uint32(b[6:]) {
		return 0
	}
	end = at + blockHead + len(payload)
	time, n := binary.Varint(payload)
	if n <= 0 {
		return 0
	}
	rest := payload[n:]
	if !g.kind.isText() {
		var ok bool
		if rest, ok = g.addTubes(rest); !ok {
			return 0
		}
	}
	g.blocks = append(g.blocks, block{time, end - len(rest), end})
	return end
}

// addTubes adds the names at the start of a payload, and returns the rest.
func (g *segment) addTubes(b []byte) (rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, false
	}
	b = b[n:]
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, false
		}
		name := string(b[n : n+int(size)])
		g.number[name] = len(g.tubes)
		g.tubes = append(g.tubes, name)
		b = b[n+int(size):]
	}
	return b, true
}

// load indexes the blocks of a file, and returns the number of bytes at its end that are
// not valid blocks.
func (g *segment) load(data []byte) (damaged int) {
	g.data, g.sealed = data, true
	valid := 0
	if bytes.HasPrefix(data, []byte(header)) {
		for end := len(header); end > 0; end = g.index(end) {
			valid = end
		}
	}
	g.data = data[:valid]
	if len(g.blocks) > 0 {
		g.begin = g.blocks[0].time
	}
	return len(data) - valid
}

// pointsIn returns the tubes' numbers and the encoded values in a block.
func pointsIn(b []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for tube := uint64(0); len(b) > 0; {
			step, n := binary.Uvarint(b)
			if n <= 0 || n == len(b) {
				return
			}
			size := int(b[n])
			if b = b[n+1:]; size > len(b) {
				return
			}
			if tube += step; !yield(int(min(tube, 1<<31)), b[:size]) {
				return
			}
			b = b[size:]
		}
	}
}
