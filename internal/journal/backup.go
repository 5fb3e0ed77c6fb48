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

// A Backup is a tar archive of the segments of a journal. The unpacked archive is a
// journal. The server can write the journal during the backup. The archive contains all
// records that were flushed before the call of Backup, and possibly some later ones.
type Backup struct{ files *wal.Files }

// ErrNothing is the error of Backup for an empty journal.
var ErrNothing = errors.New("the journal is empty: no job was put yet")

// Backup opens the journal for a backup. Any goroutine can call it.
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

// Close releases the space of segments that the journal removed during the backup.
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

// ErrNotBackup reports data that no Backup writes. ReadBackup wraps it.
var ErrNotBackup = errors.New("invalid backup of a journal")

// ReadBackup unpacks an archive of Write into an empty directory, makes it durable, and
// reads it to check that it is complete. The result is a single server's journal. If the
// archive ends early, the error wraps io.ErrUnexpectedEOF. After an error, the directory
// can contain part of the archive.
func ReadBackup(fsys vfs.FS, dir string, r io.Reader) (report wal.Report, err error) {
	if err = unpack(fsys, dir, r); err == nil {
		report, err = Release(fsys, dir)
	}
	if err != nil {
		return report, fmt.Errorf("journal: back up to %s: %w", dir, err)
	}
	return report, nil
}

// ReadSnapshot is ReadBackup for another member of the same cluster: the result is still
// a member's journal. It contains every change up to the returned entry.
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

var errNotOfMember = errors.New("it contains no committed changes yet")

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
