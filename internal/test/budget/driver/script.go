package main

import (
	"strconv"
)

const (
	firstID   = 1_000_000_000 // first id of a scenario, so that all ids have ten digits
	firstTube = 10_000        // so that all tube numbers have five digits
)

// A script contains the commands of an operation. Only digits change between operations,
// so that the client adds few instructions to the count.
type script struct {
	text  []byte
	ids   []int // offsets of ids
	tubes []int // offsets of tube numbers
}

// newScript returns a script. write appends its commands for a job and a tube. newScript
// compares outputs of write to find the digits that change.
func newScript(write func(dst []byte, id uint64, tube string) []byte) *script {
	text := write(nil, 1111111111, tubeName(11111))
	return &script{
		text:  text,
		ids:   differences(text, write(nil, 2222222222, tubeName(11111)), 10),
		tubes: differences(text, write(nil, 1111111111, tubeName(22222)), 5),
	}
}

// differences returns the offsets at which two scripts differ, in runs of run bytes.
func differences(a, b []byte, run int) (at []int) {
	for i := 0; i < len(a); i++ {
		if a[i] != b[i] {
			at = append(at, i)
			i += run - 1
		}
	}
	return at
}

func tubeName(number int) string { return "tube" + strconv.Itoa(number) }

// with returns the script for the given job and tube, until the next call.
func (s *script) with(id uint64, tube int) []byte {
	var scratch [20]byte
	set := func(places []int, n uint64) {
		digits := strconv.AppendUint(scratch[:0], n, 10)
		for _, at := range places {
			copy(s.text[at:], digits)
		}
	}
	if len(s.ids) > 0 {
		set(s.ids, id)
	}
	if len(s.tubes) > 0 {
		set(s.tubes, uint64(tube))
	}
	return s.text
}
