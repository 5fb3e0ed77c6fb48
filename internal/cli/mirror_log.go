package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"unique"

	"github.com/beanpole-mq/beanpole/client"
)

// A mirrorLog is the file in which a mirror notes what it does, so that it can go on
// after it was killed: a JSON object a line. What is about to be done at the other
// server is on the disk before it is done; what was done is noted after it.
//
// Without a file it notes nothing.
type mirrorLog struct {
	file *os.File // nil: none
	w    *bufio.Writer
}

// A mirrorRecord is a line. Exactly one of its fields is set.
type mirrorRecord struct {
	Mirror *mirrorHead  `json:"mirror,omitempty"` // the first line
	Batch  *mirrorBatch `json:"batch,omitempty"`  // these are about to be put
	Copies []mirrorCopy `json:"copies,omitempty"` // these are copies now
	Done   bool         `json:"done,omitempty"`   // the last batch is put: what of it is no copy was refused
	Redo   []uint64     `json:"redo,omitempty"`   // the copies of these jobs are about to be deleted, and made again
	Gone   []uint64     `json:"gone,omitempty"`   // these jobs have no copies any more
}

// A mirrorHead says what is mirrored.
type mirrorHead struct {
	From string `json:"from"`
	To   string `json:"to"`
	Tube string `json:"tube"`
}

// A mirrorBatch is jobs that are put. Their copies have larger ids than After.
type mirrorBatch struct {
	After uint64       `json:"after"`
	Jobs  []mirrorCopy `json:"jobs"`
}

// A mirrorCopy is a job, and its copy.
type mirrorCopy struct {
	Source uint64       `json:"source"`
	Copy   uint64       `json:"copy,omitempty"` // its id; 0 in a batch
	Tube   string       `json:"tube"`
	Pri    uint32       `json:"priority"`
	State  client.State `json:"state"`
	Due    dueTime      `json:"due,omitzero"`
	Key    string       `json:"key,omitempty"` // in a batch: what is equal in a job and its copy
}

func (c *mirrorCopy) jobCopy() jobCopy {
	return jobCopy{c.Copy, c.Pri, c.State, unique.Make(c.Tube).Value(), c.Due} // one string for all jobs of a tube
}

// mirrorKey returns what a job and its copy have in common.
func mirrorKey(tube string, pri uint32, ttr int64, body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d\n", tube, pri, ttr)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A mirrorState is what the log of an earlier run tells.
type mirrorState struct {
	copies map[uint64]jobCopy // by source
	redo   map[uint64]bool    // sources whose copies were about to be deleted
	batch  *mirrorBatch       // that was under way; nil: none
	known  bool               // there was an earlier run
}

// loadMirror reads the log of a mirror, if there is one.
func loadMirror(file string, head mirrorHead) (st mirrorState, err error) {
	st = mirrorState{copies: make(map[uint64]jobCopy), redo: make(map[uint64]bool)}
	if file == "" {
		return st, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return st, nil // nothing that a torn line tells of was begun
		}
		data = rest
		var r mirrorRecord
		if err := json.Unmarshal(line, &r); err != nil || (n == 1) != (r.Mirror != nil) {
			return st, fmt.Errorf("%s is not the progress of a mirror (line %d); remove it, and clear what was copied, to start over", file, n)
		}
		if r.Mirror != nil && *r.Mirror != head {
			return st, usageError("%s is of a mirror from %s to %s, tube %q; for another choose another file with --progress", file, r.Mirror.From, r.Mirror.To, r.Mirror.Tube)
		}
		st.known = true
		st.apply(&r)
	}
}

// apply does to the state what a record tells.
func (st *mirrorState) apply(r *mirrorRecord) {
	if r.Batch != nil {
		st.batch = r.Batch
	}
	if r.Done {
		st.batch = nil
	}
	for _, c := range r.Copies {
		st.copies[c.Source] = c.jobCopy()
		delete(st.redo, c.Source)
	}
	for _, id := range r.Redo {
		st.redo[id] = true
	}
	for _, id := range r.Gone {
		delete(st.copies, id)
		delete(st.redo, id)
	}
}

// openMirror begins a new log with what is known. The file is the old one or the new
// one at any moment.
func openMirror(file string, head mirrorHead, st *mirrorState) (*mirrorLog, error) {
	if file == "" {
		return &mirrorLog{}, nil
	}
	f, err := os.Create(file + ".new")
	if err != nil {
		return nil, err
	}
	l := &mirrorLog{f, bufio.NewWriter(f)}
	err = l.note(mirrorRecord{Mirror: &head})
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(st.copies)), scanBatch) {
		copies := make([]mirrorCopy, len(ids))
		for i, id := range ids {
			c := st.copies[id]
			copies[i] = mirrorCopy{Source: id, Copy: c.id, Tube: c.tube, Pri: c.pri, State: c.state, Due: c.due}
		}
		err = errors.Join(err, l.note(mirrorRecord{Copies: copies}))
	}
	if err = errors.Join(err, l.sync()); err == nil {
		err = replaceFile(file)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// note notes what was done.
func (l *mirrorLog) note(r mirrorRecord) error {
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	l.w.Write(append(line, '\n'))
	return l.w.Flush()
}

// intend notes what is about to be done, on the disk.
func (l *mirrorLog) intend(r mirrorRecord) error {
	if err := l.note(r); err != nil {
		return err
	}
	return l.sync()
}

func (l *mirrorLog) sync() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.w.Flush(), l.file.Sync())
}

func (l *mirrorLog) close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.sync(), l.file.Close())
}
