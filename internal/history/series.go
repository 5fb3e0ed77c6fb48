package history

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A Series is a quantity that is recorded. Its number is part of the file format.
type Series int

// The series. Memory and later ones are recorded only for the whole server.
const (
	Put Series = iota
	Done
	Reserves
	Ready
	Reserved
	OldestReady // s
	WaitMedian  // ns that jobs were ready before a reserve
	WaitP95
	RunMedian // ns that jobs were reserved before a delete, release or bury
	RunP95
	Failed
	Retried
	Timeouts
	Buried
	Delayed
	Memory // bytes
	Connections
	Waiting
	Refused
	Commands
	NumSeries
)

// Names contains the names of the series in the API.
var Names = [NumSeries]string{
	"put", "done", "reserves", "ready", "reserved", "oldest_ready", "wait_p50", "wait_p95", "run_p50", "run_p95",
	"failed", "retried", "timeouts", "buried", "delayed", "memory_bytes", "connections", "waiting", "refused", "commands",
}

// IsDuration reports whether the values are durations in ns.
func (s Series) IsDuration() bool { return s >= WaitMedian && s <= RunP95 }

// IsIncrease reports whether the values are increases during a period. The other series
// are levels at its end.
func (s Series) IsIncrease() bool {
	const set = 1<<Put | 1<<Done | 1<<Reserves | 1<<Failed | 1<<Retried | 1<<Timeouts | 1<<Refused | 1<<Commands
	return set>>s&1 == 1
}

// Values contains the values of all series for a period.
type Values [NumSeries]uint64

// Add adds the next part of a period to v. Increases are added up, levels are replaced,
// and durations become averages weighted by the number of jobs.
func (v *Values) Add(next *Values) {
	for s := WaitMedian; s <= RunP95; s++ {
		if old, more := v.jobs(s), next.jobs(s); more > 0 {
			v[s] = uint64((float64(v[s])*old + float64(next[s])*more) / (old + more))
		}
	}
	for s := range NumSeries {
		switch {
		case s.IsIncrease():
			v[s] += next[s]
		case !s.IsDuration():
			v[s] = next[s]
		}
	}
}

// jobs returns the number of jobs that a duration covers.
func (v *Values) jobs(s Series) float64 {
	if s <= WaitP95 {
		return float64(v[Reserves])
	}
	return float64(v[Done] + v[Failed] + v[Retried])
}

// A duration is stored as its logarithm, in steps of 15 %, starting at a microsecond.
// Durations of up to 46 s take one byte.
const stepsPerOctave, smallest = 5, 10

func (v *Values) append(b []byte) []byte {
	set := uint64(0)
	for s, n := range v {
		if n != 0 {
			set |= 1 << s
		}
	}
	b = binary.AppendUvarint(b, set)
	for s, n := range v {
		if n == 0 {
			continue
		}
		if Series(s).IsDuration() {
			n = 1 + uint64(math.Round(stepsPerOctave*max(0, math.Log2(float64(n))-smallest)))
		}
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// decodeValues decodes the result of append. It skips series that it does not support.
func decodeValues(b []byte) (v Values, ok bool) {
	set, n := binary.Uvarint(b)
	for ok = n > 0; ok && set != 0; set &= set - 1 {
		b = b[n:]
		var value uint64
		value, n = binary.Uvarint(b)
		s := Series(bits.TrailingZeros64(set))
		switch {
		case n <= 0:
			return v, false
		case s >= NumSeries:
		case s.IsDuration():
			v[s] = uint64(math.Exp2(smallest + float64(min(value-1, 255))/stepsPerOctave))
		default:
			v[s] = value
		}
	}
	return v, ok && n == len(b)
}
