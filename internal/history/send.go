package history

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
)

// Newest returns the times of the newest blocks by kind, in ms.
func (s *Store) Newest() (times [NumKinds]int64) {
	for k := range times {
		times[k] = s.newest(Kind(k))
	}
	return times
}

// Send writes the segments with blocks that are newer than another store's newest blocks.
func (s *Store) Send(w io.Writer, newest [NumKinds]int64) error {
	for k := range NumKinds {
		for _, v := range s.views(k, newest[k], "") {
			head := binary.AppendUvarint([]byte{byte(k)}, uint64(len(v.data)))
			if _, err := w.Write(head); err != nil {
				return err
			}
			if _, err := w.Write(v.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// Receive adds those blocks from Send that are newer than the store's blocks. After an
// error, it has added some of them.
func (s *Store) Receive(from io.Reader) error {
	r := bufio.NewReader(from)
	newest := s.Newest()
	for {
		k, err := r.ReadByte()
		if err == io.EOF {
			return nil
		}
		size, failed := binary.ReadUvarint(r)
		if err != nil || failed != nil || Kind(k) >= NumKinds || size > maxFile {
			return io.ErrUnexpectedEOF
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		g := newSegment(Kind(k), math.MaxInt64)
		g.load(data)
		v := view{data: g.data, tubes: g.tubes}
		for _, b := range g.blocks {
			if b.time <= newest[k] {
				continue
			}
			s.add(g.kind, b.time, func(into *segment, _ int64) {
				if g.kind.isText() {
					into.addText(b.time, data[b.off:b.end])
				} else {
					into.addPoints(b.time, v.points(b))
				}
			})
		}
	}
}
