package wire

import (
	"bytes"
	"math"
	"strconv"
)

// Facts is the list of attributes that a client requests for the lines of RESERVED and
// FOUND. Each takes four bits, starting with the lowest. The zero value requests none.
//
//	> want tube reserves
//	< OK
//	> reserve
//	< RESERVED 7 5 tube=mail reserves=1
type Facts uint32

const factBits = 4

// Valid reports whether f contains only attributes that want supports.
func (f Facts) Valid() bool {
	for ; f != 0; f >>= factBits {
		if n := int(f & (1<<factBits - 1)); n == 0 || n >= len(facts) {
			return false
		}
	}
	return true
}

// facts contains the words of want, from index 1. Their values are the same as in
// stats-job.
var facts = [...]struct {
	word string
	of   func(j *JobStats) *uint64 // nil for the tube
}{
	1: {"tube", nil},
	2: {"reserves", func(j *JobStats) *uint64 { return &j.Reserves }},
	3: {"timeouts", func(j *JobStats) *uint64 { return &j.Timeouts }},
	4: {"age", func(j *JobStats) *uint64 { return &j.Age }},
	5: {"left", func(j *JobStats) *uint64 { return &j.TimeLeft }},
	6: {"ttr", func(j *JobStats) *uint64 { return &j.TTR }},
	7: {"pri", func(j *JobStats) *uint64 { return &j.Pri }},
}

// String returns the words of want, separated by spaces.
func (f Facts) String() string { return string(bytes.TrimLeft(appendFactWords(nil, f), " ")) }

func appendFactWords(dst []byte, f Facts) []byte {
	for ; f != 0; f >>= factBits {
		dst = append(append(dst, ' '), facts[f%(1<<factBits)].word...)
	}
	return dst
}

// parseFacts parses the words of want. end is negative if a word is unknown or repeated.
func parseFacts(line []byte, i int) (f uint32, end int) {
	if i < len(line) && line[i] != ' ' {
		return 0, -1
	}
	seen := 0
	for shift := 0; ; shift += factBits {
		for i < len(line) && line[i] == ' ' {
			i++
		}
		if i == len(line) {
			return f, i
		}
		word, _, _ := bytes.Cut(line[i:], []byte(" "))
		i += len(word)
		k := factOf(word)
		if k == 0 || seen&(1<<k) != 0 {
			return 0, -1
		}
		seen |= 1 << k
		f |= uint32(k) << shift
	}
}

// factOf returns the index of a word in facts, or 0 if it is unknown.
func factOf(word []byte) int {
	for k := range facts {
		if string(word) == facts[k].word && k > 0 {
			return k
		}
	}
	return 0
}

// AppendFacts appends facts of a job to the line at the end of dst, which AppendJobStart
// has started.
func AppendFacts(dst []byte, f Facts, j *JobStats) []byte {
	dst = dst[:len(dst)-len(crlf)]
	for ; f != 0; f >>= factBits {
		fact := &facts[f%(1<<factBits)]
		dst = append(append(append(dst, ' '), fact.word...), '=')
		if fact.of == nil {
			dst = append(dst, j.Tube...)
		} else {
			dst = strconv.AppendUint(dst, *fact.of(j), 10)
		}
	}
	return append(dst, crlf...)
}

// ParseFacts parses the facts of a reply. It skips unknown words, and returns false if
// the line contains no facts. It does not copy the name of the tube if j already contains
// it.
func ParseFacts(line []byte, j *JobStats) bool {
	for len(line) > 0 {
		var entry []byte
		entry, line, _ = bytes.Cut(line, []byte(" "))
		word, value, ok := bytes.Cut(entry, []byte("="))
		k := factOf(word)
		switch {
		case !ok:
			return false
		case k == 0:
		case facts[k].of == nil:
			if !ValidTube(value) {
				return false
			}
			if string(value) != j.Tube {
				j.Tube = string(value)
			}
		default:
			v, end := digits(value, 0, math.MaxUint64)
			if *facts[k].of(j) = v; end != len(value) {
				return false
			}
		}
	}
	return true
}
