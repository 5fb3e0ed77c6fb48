package record

import (
	"encoding/binary"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// An Applied says up to which entry of a cluster's log a journal has every fact. The zero
// Applied says that it has none.
type Applied struct {
	Index, Term uint64 // of the entry
	Stamp       int64  // the cluster's time of the entry, ns since 1970
}

// Change returns the change whose record says so.
func (a Applied) Change() engine.Change {
	b := binary.AppendUvarint(nil, a.Index)
	b = binary.AppendUvarint(b, a.Term)
	return engine.Change{Kind: AppliedMark, Body: binary.LittleEndian.AppendUint64(b, uint64(a.Stamp))}
}

// DecodeApplied is the reverse of Applied.Change, for the Body; ok is false for bytes that
// are something else.
func DecodeApplied(b []byte) (a Applied, ok bool) {
	d := decoder{rest: b}
	a = Applied{Index: d.uvarint(), Term: d.uvarint(), Stamp: d.moment()}
	return a, !d.bad && len(d.rest) == 0
}
