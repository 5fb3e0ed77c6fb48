package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/binlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A File is a file whose jobs were taken into the journal. The checksum is
// cryptographic because clients choose what is in such files.
type File struct {
	Name   string `json:"name"`   // without the path
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hexadecimal
}

// identify reads a file and returns its size and checksum.
func identify(fsys vfs.FS, dir, name string) (File, error) {
	f, err := fsys.Open(filepath.Join(dir, name))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(f, 0, size), make([]byte, min(size+1, 1<<20))); err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return File{name, size, hex.EncodeToString(sum.Sum(nil))}, nil
}

func identifyAll(fsys vfs.FS, dir string, names []string) ([]File, error) {
	files := make([]File, len(names))
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
func NotAdopted(fsys vfs.FS, dir string, taken []File) ([]string, error) {
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

// A transfer is a take-over or an import that was done, as its record says.
type transfer struct {
	kind    engine.ChangeKind // adoptionDone or importDone
	at      int64             // ns since 1970
	files   []File
	segment uint64 // of the record
	size    int64  // of the record, bytes in the log
}

func newTransfer(kind engine.ChangeKind, at int64, files []File, segment uint64) transfer {
	t := transfer{kind: kind, at: at, files: files, segment: segment}
	t.size = wal.Cost(1 + len(t.change().Body))
	return t
}

// change returns the change whose record says that the transfer is done.
func (t *transfer) change() engine.Change {
	return engine.Change{Kind: t.kind, Body: appendTransfer(nil, t.at, t.files)}
}

// transferBytes returns the size of the records of all transfers.
func (j *Journal) transferBytes() (n int64) {
	for i := range j.transfers {
		n += j.transfers[i].size
	}
	return n
}

// appendTransfer appends what follows the kind of the record.
func appendTransfer(dst []byte, at int64, files []File) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	for _, f := range files {
		dst = append(append(dst, byte(len(f.Name))), f.Name...)
		dst = binary.AppendUvarint(dst, uint64(f.Size))
		sum, _ := hex.DecodeString(f.SHA256)
		dst = append(dst, sum...)
	}
	return dst
}

// decodeTransfer is the reverse of appendTransfer. Earlier builds have written nothing
// here, which stands for no file.
func decodeTransfer(b []byte) (at int64, files []File, ok bool) {
	if len(b) == 0 {
		return 0, nil, true
	}
	d := decoder{rest: b}
	at = d.moment()
	for len(d.rest) > 0 {
		name := string(d.bytes(int(d.byte())))
		size := int64(d.uvarint())
		sum := d.bytes(sha256.Size)
		files = append(files, File{name, size, hex.EncodeToString(sum)})
		if name == "" || size < 0 {
			d.bad = true
		}
	}
	return at, files, !d.bad
}
