package binlog

import (
	"encoding/binary"

	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A builder assembles a file. It shares no code with the package but uses the struct
// offsets of the package comment, so that the two implementations check each other.
type builder struct {
	bytes []byte
	ends  []int // end offsets of the header and of each record
}

func build(version int) *builder {
	return &builder{binary.LittleEndian.AppendUint32(nil, uint32(version)), []int{4}}
}

// A field is a value that replaces the bytes at an offset of the struct.
type field struct {
	offset int
	value  any // uint8, uint32, int32, uint64 or int64
}

// These are offsets in the struct.
const (
	atID, atPri, atDelay, atTTR, atSize, atCreated, atDeadline = 0, 8, 16, 24, 32, 40, 48

	atReserves, atTimeouts, atReleases, atBuries, atKicks, atState = 56, 60, 64, 68, 72, 76
)

// full adds a full record. The body includes its CR LF.
func (b *builder) full(tube string, id uint64, state byte, body string, fields ...field) *builder {
	return b.add(tube, id, state, len(body), fields).raw(body)
}

// short adds a short record of a job with a body of 3 bytes.
func (b *builder) short(id uint64, state byte, fields ...field) *builder {
	return b.add("", id, state, 5, fields)
}

// add adds a record up to its body. The default times are: created 2 seconds after the
// epoch, deadline 1000, ttr 60, delay 30.
func (b *builder) add(tube string, id uint64, state byte, size int, fields []field) *builder {
	le := binary.LittleEndian
	b.bytes = le.AppendUint32(b.bytes, uint32(len(tube)))
	job := make([]byte, 80)
	const unit = uint64(1e9)
	defaults := []field{
		{atID, id}, {atPri, uint32(1024)}, {atDelay, 30 * unit}, {atTTR, 60 * unit}, {atSize, int32(size)},
		{atCreated, 2 * unit}, {atDeadline, 1000 * unit},
		{atReserves, uint32(1)}, {atTimeouts, uint32(2)}, {atReleases, uint32(3)}, {atBuries, uint32(4)}, {atKicks, uint32(5)},
		{atState, state},
	}
	for _, f := range append(defaults, fields...) {
		if _, err := binary.Encode(job[f.offset:], le, f.value); err != nil {
			panic(err)
		}
	}
	b.bytes = append(append(b.bytes, tube...), job...)
	b.ends = append(b.ends, len(b.bytes))
	return b
}

// raw adds bytes to the last record, if there is one.
func (b *builder) raw(s string) *builder {
	b.bytes = append(b.bytes, s...)
	b.ends[len(b.ends)-1] = len(b.bytes)
	return b
}

// dirOf creates a directory in memory with files binlog.1 and so on.
func dirOf(tb rapid.TB, files ...[]byte) vfs.FS {
	tb.Helper()
	fsys := memfs.New()
	if err := fsys.Mkdir("log"); err != nil {
		tb.Fatal(err)
	}
	for i, b := range files {
		addFile(tb, fsys, fileName(i+1), b)
	}
	return fsys
}

func addFile(tb rapid.TB, fsys vfs.FS, name string, b []byte) {
	tb.Helper()
	f, err := fsys.Create("log/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

// readChanges reads the directory log and returns the changes and the report.
func readChanges(tb rapid.TB, fsys vfs.FS) ([]engine.Change, Report) {
	tb.Helper()
	var changes []engine.Change
	report, err := Read(fsys, "log", Options{}, func(c engine.Change) error {
		c.Body = append([]byte(nil), c.Body...)
		changes = append(changes, c)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return changes, report
}
