package wire

import "strconv"

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
	Delay    uint64 // seconds, from the last put or release
	TTR      uint64 // seconds
	TimeLeft uint64 // whole seconds until a delayed or reserved job becomes ready; otherwise 0
	Size     uint64 // bytes of the body

	Reserves, Timeouts, Releases, Buries, Kicks uint64

	Cursor []byte // position after the job
}

// listedKeys contains the numeric keys in the order of the output.
var listedKeys = [...]struct {
	key string
	of  func(j *ListedJob) uint64
}{
	{"id", func(j *ListedJob) uint64 { return j.ID }},
	{"pri", func(j *ListedJob) uint64 { return j.Pri }},
	{"age", func(j *ListedJob) uint64 { return j.Age }},
	{"delay", func(j *ListedJob) uint64 { return j.Delay }},
	{"ttr", func(j *ListedJob) uint64 { return j.TTR }},
	{"time-left", func(j *ListedJob) uint64 { return j.TimeLeft }},
	{"size", func(j *ListedJob) uint64 { return j.Size }},
	{"reserves", func(j *ListedJob) uint64 { return j.Reserves }},
	{"timeouts", func(j *ListedJob) uint64 { return j.Timeouts }},
	{"releases", func(j *ListedJob) uint64 { return j.Releases }},
	{"buries", func(j *ListedJob) uint64 { return j.Buries }},
	{"kicks", func(j *ListedJob) uint64 { return j.Kicks }},
}

// AppendListedStart starts the data of the reply to list-jobs. It does not append the
// reply line.
func AppendListedStart(dst []byte) []byte { return append(dst, yamlStart...) }

// AppendListed appends the next job.
func AppendListed(dst []byte, j *ListedJob) []byte {
	before := listedStart
	for i := range listedKeys {
		k := &listedKeys[i]
		dst = append(dst, before...)
		dst = append(dst, k.key...)
		dst = append(dst, yamlColon...)
		dst = append(strconv.AppendUint(dst, k.of(j), 10), '\n')
		before = listedIndent
	}
	dst = append(dst, listedIndent+listedCursor+yamlColon+`"`...)
	dst = append(dst, j.Cursor...)
	return append(dst, "\"\n"...)
}
