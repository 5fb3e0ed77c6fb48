package record

import (
	"encoding/binary"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// An Applied identifies an entry of a cluster's log. A journal contains the changes of
// that entry and of all earlier ones. The zero Applied identifies no entry.
type Applied struct {
	Index, Term uint64 // index and term of the entry
	Stamp       int64  // the cluster's time of the entry, ns since 1970
}

// Change returns the change that records a in a journal.
func (a Applied) Change() engine.Change {
	b := binary.AppendUvarint(nil, a.Index)
	b = binary.AppendUvarint(b, a.Term)
	return engine.Change{Kind: AppliedMark, Body: binary.LittleEndian.AppendUint64(b, uint64(a.Stamp))}
}

// DecodeApplied decodes the Body of Applied.Change. ok is false for other bytes.
func DecodeApplied(b []byte) (a Applied, ok bool) {
	d := decoder{rest: b}
	a = Applied{Index: d.uvarint(), Term: d.uvarint(), Stamp: d.moment()}
	return a, !d.bad && len(d.rest) == 0
}
