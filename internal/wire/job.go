package wire

import "strconv"

// JobStats contains the values of a job in the replies to stats-job and list-jobs, and in
// the lines that want extends.
type JobStats struct {
	Tube     string
	State    string // ready, reserved, delayed or buried
	ID       uint64
	Pri      uint64
	Age      uint64 // seconds since the put
	Delay    uint64 // seconds, from the last put or release
	TTR      uint64 // seconds
	TimeLeft uint64 // whole seconds until a delayed or reserved job becomes ready; otherwise 0
	Size     uint64 // bytes of the body
	File     uint64 // number of the segment with the job; 0 without a journal

	Reserves, Timeouts, Releases, Buries, Kicks uint64
}

// jobNumbers contains the numbers of a job by their keys, in the order of the output.
var jobNumbers = [...]struct {
	key string
	of  func(j *JobStats) uint64
}{
	{"id", func(j *JobStats) uint64 { return j.ID }},
	{"pri", func(j *JobStats) uint64 { return j.Pri }},
	{"age", func(j *JobStats) uint64 { return j.Age }},
	{"delay", func(j *JobStats) uint64 { return j.Delay }},
	{"ttr", func(j *JobStats) uint64 { return j.TTR }},
	{"time-left", func(j *JobStats) uint64 { return j.TimeLeft }},
	{keySize, func(j *JobStats) uint64 { return j.Size }},
	{keyFile, func(j *JobStats) uint64 { return j.File }},
	{"reserves", func(j *JobStats) uint64 { return j.Reserves }},
	{"timeouts", func(j *JobStats) uint64 { return j.Timeouts }},
	{"releases", func(j *JobStats) uint64 { return j.Releases }},
	{"buries", func(j *JobStats) uint64 { return j.Buries }},
	{"kicks", func(j *JobStats) uint64 { return j.Kicks }},
}

const (
	keySize = "size" // only in list-jobs
	keyFile = "file" // only in stats-job
)

// AppendJobStats appends the reply to stats-job. Its keys are exactly those of
// beanstalkd.
func AppendJobStats(dst []byte, j *JobStats, c Compat) []byte {
	start := len(dst)
	d := dict(openData(dst))
	for i, n := range &jobNumbers {
		if n.key != keySize {
			d.uint(n.key, n.of(j))
		}
		if i == 0 {
			d.text("tube", j.Tube, c)
			d.bare("state", j.State)
		}
	}
	return closeData(d, start)
}

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

// AppendListedStart starts the data of the reply to list-jobs. It does not append the
// reply line.
func AppendListedStart(dst []byte) []byte { return append(dst, yamlStart...) }

// AppendListed appends the next job. cursor is the position after it.
func AppendListed(dst []byte, j *JobStats, cursor []byte) []byte {
	before := listedStart
	for _, n := range &jobNumbers {
		if n.key == keyFile {
			continue
		}
		dst = append(dst, before...)
		dst = append(dst, n.key...)
		dst = append(dst, yamlColon...)
		dst = append(strconv.AppendUint(dst, n.of(j), 10), '\n')
		before = listedIndent
	}
	dst = append(dst, listedIndent+listedCursor+yamlColon+`"`...)
	dst = append(dst, cursor...)
	return append(dst, "\"\n"...)
}
