package main

import (
	"strconv"
)

const (
	firstID   = 1_000_000_000 // of the jobs of a scenario: so all ids have ten digits
	firstTube = 10_000        // so all numbers of tubes have five
)

// A script is what a client sends in one operation: bytes that are made once and
// in which only digits change, so that a count has little of the client's own
// work in it.
type script struct {
	text  []byte
	ids   []int // where the ids are
	tubes []int // where the numbers of tubes are
}

// newScript takes what writes the script for a job and a tube. It finds out
// where they are from what differs when they do.
func newScript(write func(dst []byte, id uint64, tube string) []byte) *script {
	text := write(nil, 1111111111, tubeName(11111))
	return &script{
		text:  text,
		ids:   differences(text, write(nil, 2222222222, tubeName(11111)), 10),
		tubes: differences(text, write(nil, 1111111111, tubeName(22222)), 5),
	}
}

// differences returns where two scripts differ, which is in runs of so many bytes.
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
