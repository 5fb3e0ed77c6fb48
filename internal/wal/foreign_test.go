package wal

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

func foreign(t *testing.T, fsys *memfs.FS, sequence uint64, content string) {
	t.Helper()
	f, err := fsys.Create(testDir + FileName(sequence))
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	must(t, fsys.SyncDir(testDir))
}

func appendAll(t *testing.T, l *Log, records ...string) {
	t.Helper()
	for _, r := range records {
		_, err := l.Append([]byte(r))
		must(t, err)
	}
	must(t, l.Flush())
	must(t, l.Sync())
}

// If another program creates a file with the name of the next segment, the log leaves
// that file alone, and its next attempt uses another name.
func TestForeignNextFile(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, testOptions)
	foreign(t, fsys, 2, "somebody's")
	foreign(t, fsys, 3, "somebody's")
	appendAll(t, l, "a")
	for range 2 {
		if err := l.Prepare(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Prepare: %v", err)
		}
	}
	big := string(make([]byte, 800))
	appendAll(t, l, big, big, big)
	if s := l.Stats(); s.Current != 5 {
		t.Errorf("three segments: %+v", s)
	}
	must(t, l.Close())
	all := files(t, fsys)
	if string(all[FileName(2)]) != "somebody's" || string(all[FileName(3)]) != "somebody's" {
		t.Errorf("the other program's files were removed or changed: %q", slices.Sorted(mapKeys(all)))
	}
}

// If a file name has an impossible sequence, Open fails and changes nothing. If the
// newest segment has the largest sequence, records cannot be appended, and no file is
// removed.
func TestLargestSequence(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, testOptions)
	appendAll(t, l, "a", "b")
	must(t, l.Close())
	all := files(t, fsys)
	for _, sequence := range []uint64{1<<64 - 1, MaxSequence + 1} {
		for _, content := range []string{"", "x"} {
			fsys := load(t, all)
			foreign(t, fsys, sequence, content)
			for what, open := range map[string]func() error{
				"open":    func() error { _, err := Open(fsys, testDir, testOptions); return err },
				"salvage": func() error { _, err := salvaged(fsys); return err },
			} {
				var damage *CorruptError
				if err := open(); !errors.As(err, &damage) || damage.File != testDir+FileName(sequence) {
					t.Errorf("%s with a file of sequence %x: %v", what, sequence, err)
				}
			}
			if len(files(t, fsys)) != len(all)+1 {
				t.Errorf("files: %q", slices.Sorted(mapKeys(files(t, fsys))))
			}
		}
	}
	// An empty file is one that a killed process has preallocated, so Open removes it.
	foreign(t, fsys, MaxSequence, "")
	l = mustOpen(t, fsys, testOptions)
	l.pool.next = MaxSequence
	appendAll(t, l, "c")
	if s := l.Stats(); s.Current != MaxSequence {
		t.Errorf("the last segment: %+v", s)
	}
	if _, err := l.Append(make([]byte, 1000)); err != ErrNoSequence {
		t.Errorf("append to a log without further sequences: %v", err)
	}
	must(t, l.Close())
	l = mustOpen(t, fsys, testOptions)
	if _, err := l.Append([]byte("d")); err != ErrNoSequence {
		t.Errorf("then: %v", err)
	}
	must(t, l.Close())
	if got, err := openOnce(fsys); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("records: %q, %v", got, err)
	}
}
