package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// The data of the reply to list-jobs is a list of dictionaries:
//
//	---\n
//	- id: 7\n
//	  pri: 1024\n
//	  ...
//	  cursor: "40000000000.7"\n
//	- id: 9\n
//
// The format and the keys id, pri, age, size and time-left follow list-jobs of
// beanstalkd-pi.
const (
	listedStart  = "- "
	listedIndent = "  "
	listedCursor = "cursor"
)

// A ListedJob is a job in a reply to list-jobs: the values of stats-job, the size of its
// body, and its position.
type ListedJob struct {
	ID       uint64
	Pri      uint64
	Age      uint64 // seconds since the put
	Delay    uint64 // seconds of the last put or release
	TTR      uint64 // seconds
	TimeLeft uint64 // whole seconds until a delayed or reserved job becomes ready; otherwise 0
	Size     uint64 // bytes of the body

	Reserves, Timeouts, Releases, Buries, Kicks uint64

	Cursor []byte // position after the job; aliases the input of ParseListed
}

// listedKeys contains the numbers in the order of the output.
var listedKeys = [...]struct {
	key string
	of  func(j *ListedJob) *uint64
}{
	{"id", func(j *ListedJob) *uint64 { return &j.ID }},
	{"pri", func(j *ListedJob) *uint64 { return &j.Pri }},
	{"age", func(j *ListedJob) *uint64 { return &j.Age }},
	{"delay", func(j *ListedJob) *uint64 { return &j.Delay }},
	{"ttr", func(j *ListedJob) *uint64 { return &j.TTR }},
	{"time-left", func(j *ListedJob) *uint64 { return &j.TimeLeft }},
	{"size", func(j *ListedJob) *uint64 { return &j.Size }},
	{"reserves", func(j *ListedJob) *uint64 { return &j.Reserves }},
	{"timeouts", func(j *ListedJob) *uint64 { return &j.Timeouts }},
	{"releases", func(j *ListedJob) *uint64 { return &j.Releases }},
	{"buries", func(j *ListedJob) *uint64 { return &j.Buries }},
	{"kicks", func(j *ListedJob) *uint64 { return &j.Kicks }},
}

// AppendListedStart starts the data of the reply to list-jobs, without its line.
func AppendListedStart(dst []byte) []byte { return append(dst, yamlStart...) }

// AppendListed appends the next job.
func AppendListed(dst []byte, j *ListedJob) []byte {
	before := listedStart
	for i := range listedKeys {
		k := &listedKeys[i]
		dst = append(dst, before...)
		dst = append(dst, k.key...)
		dst = append(dst, yamlColon...)
		dst = append(strconv.AppendUint(dst, *k.of(j), 10), '\n')
		before = listedIndent
	}
	dst = append(dst, listedIndent+listedCursor+yamlColon+`"`...)
	dst = append(dst, j.Cursor...)
	return append(dst, "\"\n"...)
}

// ParseListed calls each for the jobs in the data of a reply to list-jobs, in order. A
// job is valid only during the call. Unknown keys are skipped, and missing values are
// zero.
func ParseListed(data []byte, each func(j *ListedJob)) error {
	var j ListedJob
	begun := false
	next := 0 // the key that comes next, if they come as AppendListed writes them
	err := parseLines(data, func(line []byte) bool {
		entry, ok := bytes.CutPrefix(line, []byte(listedStart))
		if ok {
			if begun {
				each(&j)
			}
			j, begun, next = ListedJob{}, true, 0
		} else if entry, ok = bytes.CutPrefix(line, []byte(listedIndent)); !ok || !begun {
			return false
		}
		key, value, ok := bytes.Cut(entry, []byte(yamlColon))
		if !ok {
			return false
		}
		if string(key) == listedCursor {
			j.Cursor = unquote(value)
			return true
		}
		for n := range listedKeys {
			k := &listedKeys[(next+n)%len(listedKeys)]
			if string(key) == k.key {
				next += n + 1
				v, end := digits(value, 0, math.MaxUint64)
				*k.of(&j) = v
				return end == len(value)
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list of jobs: %w", err)
	}
	if begun {
		each(&j)
	}
	return nil
}
