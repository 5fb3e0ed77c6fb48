package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// identify reads a file and returns its size and checksum.
func identify(fsys vfs.FS, dir, name string) (record.File, error) {
	f, err := fsys.Open(filepath.Join(dir, name))
	if err != nil {
		return record.File{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return record.File{}, err
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(f, 0, size), make([]byte, min(size+1, 1<<20))); err != nil {
		return record.File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return record.File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func identifyAll(fsys vfs.FS, dir string, names []string) ([]record.File, error) {
	files := make([]record.File, len(names))
	for i, name := range names {
		var err error
		if files[i], err = identify(fsys, dir, name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// NotAdopted returns the names of those of beanstalkd's files in a directory that
// are not among the files that its journal has taken over.
func NotAdopted(fsys vfs.FS, dir string, taken []record.File) ([]string, error) {
	names, err := binlog.Files(fsys, dir)
	if err != nil {
		return nil, err
	}
	files, err := identifyAll(fsys, dir, names)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, f := range files {
		if !slices.Contains(taken, f) {
			others = append(others, f.Name)
		}
	}
	return others, nil
}

// A transfer is a take-over or a merge that was done, as its record says.
type transfer struct {
	kind    engine.ChangeKind // record.AdoptionDone or record.MergeDone
	at      int64             // ns since 1970
	files   []record.File
	segment uint64 // of the record
	size    int64  // of the record, bytes in the log
}

func newTransfer(kind engine.ChangeKind, at int64, files []record.File, segment uint64) transfer {
	t := transfer{kind: kind, at: at, files: files, segment: segment}
	t.size = wal.Cost(1 + len(t.change().Body))
	return t
}

// change returns the change whose record says that the transfer is done.
func (t *transfer) change() engine.Change {
	return engine.Change{Kind: t.kind, Body: record.AppendTransfer(nil, t.at, t.files)}
}

// transferBytes returns the size of the records of all transfers.
func (j *Journal) transferBytes() (n int64) {
	for i := range j.transfers {
		n += j.transfers[i].size
	}
	return n
}
