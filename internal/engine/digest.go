package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digest returns a checksum of the durable state: the sum of [Hasher.Hash] over all jobs,
// pauses and named texts. Engines that made or restored the same Changes have the same
// digest. now must not precede any Tick of the engines to compare.
//
// Digest reads all bodies and tubes, which takes some tenths of a second for a million
// jobs. It must not be called in a turn for which clients wait.
func (e *Engine) Digest(now, epoch int64) uint64 {
	h := Hasher{Now: now, Epoch: epoch}
	var sum uint64
	for c := range e.Snapshots {
		sum += h.Hash(&c)
	}
	for c := range e.Pauses {
		sum += h.Hash(&c)
	}
	for c := range e.Named() {
		sum += h.Hash(&c)
	}
	return sum
}

// A Hasher computes hashes of jobs, pauses and named texts. They can be compared between
// engines that reach the same state at different times. The hash excludes state that
// Changes do not contain, or contain later:
//
//   - A reserved job counts as ready.
//   - A delayed job that is due also counts as ready: an engine that never ticks still has it as delayed.
//   - A pause that is over does not count.
//   - Reserves, timeouts and the last id do not count.
type Hasher struct {
	// Now must not precede any Tick of the engines to compare.
	Now int64

	// Epoch is the time at which the engine's clock was 0, in ns since 1970. It makes
	// engines with different clocks comparable.
	Epoch int64

	buf []byte // scratch
}

// Hash returns the hash of a job, a pause or a named text, as Snapshot, PauseOf and Named
// return them. It returns 0 for a pause that has ended.
func (h *Hasher) Hash(c *Change) uint64 {
	b := append(h.buf[:0], byte(c.Kind))
	b = append(append(b, byte(len(c.Tube))), c.Tube...)
	switch {
	case c.Kind == TubePaused && c.Due <= h.Now:
		return 0
	case c.Kind == TubePaused:
		b = binary.LittleEndian.AppendUint32(b, c.Delay)
		b = h.appendMoment(b, c.Due)
	case c.Kind.IsNamed():
		b = append(b, c.Body...)
	default:
		b = h.appendJob(b, c)
	}
	h.buf = b
	hash := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(hash[:])
}

func (h *Hasher) appendJob(b []byte, c *Change) []byte {
	state := c.State
	if state == Delayed && c.Due <= h.Now {
		state = Ready
	}
	b = append(b, byte(state))
	b = binary.LittleEndian.AppendUint64(b, c.ID)
	for _, n := range [...]uint32{c.Pri, c.Delay, c.TTR, c.Releases, c.Buries, c.Kicks} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = h.appendMoment(b, c.Created)
	switch state {
	case Delayed:
		b = h.appendMoment(b, c.Due)
	case Buried: // a rank, not a time
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Due))
	}
	if c.Origin != "" {
		b = append(append(b, byte(len(c.Origin))), c.Origin...)
	}
	if len(c.Failure) > 0 {
		b = append(append(b, byte(len(c.Failure))), c.Failure...)
	}
	return append(b, c.Body...)
}

func (h *Hasher) appendMoment(b []byte, t int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(t+h.Epoch))
}
