package journal

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A Backup is a copy of a journal that goes over a network: a tar archive of its
// segments, which is a journal where it is unpacked. A server may be writing the journal.
// All that was flushed before Backup is in it, and the beginning of what was flushed
// during that call.
type Backup struct{ files *wal.Files }

// ErrNothing is the error of Backup where no job was put yet.
var ErrNothing = errors.New("there is nothing in the journal: no job was put yet")

// Backup opens the journal to be copied. Any goroutine may call it.
func (j *Journal) Backup() (*Backup, error) {
	files, err := j.files.Files()
	if err != nil {
		return nil, fmt.Errorf("journal: back up: %w", err)
	}
	if files.Len() == 0 {
		files.Close()
		return nil, ErrNothing
	}
	return &Backup{files}, nil
}

// Close lets the server have the room of segments that it has removed meanwhile.
func (b *Backup) Close() { b.files.Close() }

// Write writes the archive.
func (b *Backup) Write(w io.Writer) error {
	archive := tar.NewWriter(w)
	err := b.files.Each(func(name string, size int64, content io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := io.Copy(archive, content)
		return err
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return fmt.Errorf("journal: back up: %w", err)
	}
	return nil
}

// ErrNotBackup is wrapped by the error of ReadBackup for what no Backup has written.
var ErrNotBackup = errors.New("not the backup of a journal")

// ReadBackup unpacks what Write has written into an empty directory, makes it durable,
// and reads it to see that it is whole. It is a single server's journal then. An archive
// that ends too soon is io.ErrUnexpectedEOF. After an error some of it may be in the
// directory.
func ReadBackup(fsys vfs.FS, dir string, r io.Reader) (report wal.Report, err error) {
	if err = unpack(fsys, dir, r); err == nil {
		report, err = Release(fsys, dir)
	}
	if err != nil {
		return report, fmt.Errorf("journal: back up to %s: %w", dir, err)
	}
	return report, nil
}

// ReadSnapshot is ReadBackup for another member of the same cluster: the journal stays
// that of a member, and has every fact up to the entry that is returned.
func ReadSnapshot(fsys vfs.FS, dir string, r io.Reader) (at Applied, err error) {
	if err = unpack(fsys, dir, r); err == nil {
		err = fsys.SyncDir(dir)
	}
	if err == nil {
		_, at, err = ReadApplied(fsys, dir)
	}
	if err == nil && at == (Applied{}) {
		err = errNotOfMember
	}
	if err != nil {
		return at, fmt.Errorf("journal: snapshot: %w", err)
	}
	return at, nil
}

var errNotOfMember = errors.New("it has nothing yet that the members of a cluster have agreed on")

func unpack(fsys vfs.FS, dir string, r io.Reader) error {
	archive := tar.NewReader(r)
	for n := 0; ; n++ {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, tar.ErrHeader):
			return ErrNotBackup
		case err != nil:
			return err
		}
		if !wal.IsFileName(head.Name) || head.Typeflag != tar.TypeReg {
			return fmt.Errorf("%w: it has the file %.80q", ErrNotBackup, head.Name)
		}
		if err := wal.WriteFile(fsys, filepath.Join(dir, head.Name), archive); err != nil { // #nosec G305 -- the pattern has no separator
			return err
		}
	}
}
