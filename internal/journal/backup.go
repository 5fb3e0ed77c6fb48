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

// A Backup is a copy of a journal that goes over a network: a tar archive of its segments,
// which is a journal where it is unpacked. A server may be writing the journal. All that was
// flushed before OpenBackup is in it, and of what was flushed meanwhile the beginning.
type Backup struct{ files *wal.Files }

// Errors of OpenBackup.
var (
	ErrTooManySegments = errors.New("the journal has too many segments to hold them all open")
	ErrNothing         = errors.New("there is nothing in the journal: no job was put yet")
)

// backupAttempts is how often OpenBackup looks for the segments: cleaning may remove one
// before it is open.
const backupAttempts = 5

// OpenBackup opens the segments of a journal, at most so many.
func OpenBackup(fsys vfs.FS, dir string, most int) (*Backup, error) {
	for n := 1; ; n++ {
		files, err := wal.OpenFiles(fsys, dir, most)
		switch {
		case err == nil && files.Len() == 0:
			return nil, ErrNothing
		case err == nil:
			return &Backup{files}, nil
		case errors.Is(err, wal.ErrTooMany):
			return nil, ErrTooManySegments
		case n == backupAttempts:
			return nil, fmt.Errorf("journal: back up: %w", err)
		}
	}
}

// Close lets the server have the room of segments that it has removed meanwhile.
func (b *Backup) Close() { b.files.Close() }

// Write writes the archive, the newest segment first.
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
func ReadBackup(fsys vfs.FS, dir string, r io.Reader) (wal.Report, error) {
	report, err := unpack(fsys, dir, r)
	if err != nil {
		return report, fmt.Errorf("journal: back up to %s: %w", dir, err)
	}
	return report, nil
}

func unpack(fsys vfs.FS, dir string, r io.Reader) (report wal.Report, err error) {
	archive := tar.NewReader(r)
	for n := 0; ; n++ {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return Release(fsys, dir)
		case errors.Is(err, io.EOF), errors.Is(err, tar.ErrHeader):
			return report, ErrNotBackup
		case err != nil:
			return report, err
		}
		if !wal.IsFileName(head.Name) || head.Typeflag != tar.TypeReg {
			return report, fmt.Errorf("%w: it has the file %.80q", ErrNotBackup, head.Name)
		}
		if err := wal.WriteFile(fsys, filepath.Join(dir, head.Name), archive); err != nil { // #nosec G305 -- the pattern has no separator
			return report, err
		}
	}
}
