package history

import (
	"encoding/json"
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

// A sentSegment is a segment in JSON, for another store.
type sentSegment struct {
	Kind Kind
	Data []byte
}

// Send writes the segments with blocks that are newer than another store's newest blocks.
func (s *Store) Send(w io.Writer, newest [NumKinds]int64) error {
	out := json.NewEncoder(w)
	for k := range NumKinds {
		for _, v := range s.views(k, newest[k], "") {
			if err := out.Encode(sentSegment{k, v.data}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Receive adds those blocks from Send that are newer than the store's blocks. After an
// error, it has added some of them.
func (s *Store) Receive(from io.Reader) error {
	in := json.NewDecoder(from)
	newest := s.Newest()
	for {
		var one sentSegment
		if err := in.Decode(&one); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if one.Kind < 0 || one.Kind >= NumKinds {
			continue // written by a newer version
		}
		g := newSegment(one.Kind, math.MaxInt64)
		g.load(one.Data)
		v := view{data: g.data, tubes: g.tubes}
		for _, b := range g.blocks {
			if b.time <= newest[g.kind] {
				continue
			}
			s.add(g.kind, b.time, func(into *segment, _ int64) {
				if g.kind.isText() {
					into.addText(b.time, g.data[b.off:b.end])
				} else {
					into.addPoints(b.time, v.points(b))
				}
			})
		}
	}
}
