package wal

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// TestRecover runs the stories in testdata/recover. A story is a sequence of commands,
// one per line, each followed by its output, indented by a tab. Files are named by the
// sequence of their segment.
//
//	append N SIZE      append N records of SIZE bytes, flush
//	sync               sync
//	prepare            preallocate segments
//	close              close the log
//	kill               leave the log open, and continue with its files
//	ls                 print the files
//	cut SEQ OFF        cut the file to OFF bytes
//	flip SEQ OFF       flip a bit
//	zero SEQ OFF N     write N zeros
//	soil SEQ OFF       write a byte 0xee
//	remove             remove the oldest segment
//	drop SEQ           remove the file
//	copy SEQ SEQ       make the second file a copy of the first
//	rename SEQ SEQ     rename the file
//	garbage SEQ N      create a file of N bytes 0xee
//	open [readonly]    open the log and print its contents
//	check              print the result of Check
//	salvage            continue with the result of Salvage
func TestRecover(t *testing.T) {
	paths, err := filepath.Glob("testdata/recover/*.txt")
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("no stories")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			must(t, err)
			s := &story{t: t, fsys: memfs.New()}
			var out strings.Builder
			for line := range strings.Lines(string(text)) {
				switch {
				case strings.HasPrefix(line, "\t"):
				case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
					out.WriteString(line)
				default:
					out.WriteString(line)
					s.print = func(format string, args ...any) { fmt.Fprintf(&out, "\t"+format+"\n", args...) }
					s.run(strings.Fields(line))
				}
			}
			if *update {
				must(t, os.WriteFile(path, []byte(out.String()), 0o644))
			} else if out.String() != string(text) {
				t.Errorf("got\n%s\nwant\n%s", &out, text)
			}
		})
	}
}

type story struct {
	t     *testing.T
	fsys  *memfs.FS
	log   *Log
	next  int // number of the next record
	print func(format string, args ...any)
}

func (s *story) run(words []string) {
	s.t.Helper()
	arg := func(i int) int64 {
		s.t.Helper()
		n, err := strconv.ParseInt(words[i], 10, 64)
		must(s.t, err)
		return n
	}
	name := func(i int) string { return testDir + FileName(uint64(arg(i))) }
	switch words[0] {
	case "append":
		for range arg(1) {
			p := fmt.Sprintf("%*d", arg(2), s.next)
			_, err := s.log.Append([]byte(p))
			must(s.t, err)
			s.next++
		}
		must(s.t, s.log.Flush())
	case "prepare":
		must(s.t, s.log.Prepare())
	case "sync":
		must(s.t, s.log.Sync())
	case "close":
		must(s.t, s.log.Close())
		s.log = nil
	case "kill":
		s.fsys, s.log = load(s.t, files(s.t, s.fsys)), nil
	case "ls":
		all := files(s.t, s.fsys)
		for _, name := range slices.Sorted(mapKeys(all)) {
			s.print("%s %d", name, len(all[name]))
		}
	case "remove":
		must(s.t, s.log.RemoveOldest())
	case "copy":
		all := files(s.t, s.fsys)
		all[FileName(uint64(arg(2)))] = all[FileName(uint64(arg(1)))]
		s.fsys = load(s.t, all)
	case "drop":
		must(s.t, s.fsys.Remove(name(1)))
	case "rename":
		must(s.t, s.fsys.Rename(name(1), name(2)))
	case "garbage":
		f, err := s.fsys.Create(name(1))
		must(s.t, err)
		_, err = f.WriteAt([]byte(strings.Repeat("\xee", int(arg(2)))), 0)
		must(s.t, err)
	case "cut", "flip", "zero", "soil":
		f, err := s.fsys.OpenWrite(name(1))
		must(s.t, err)
		switch words[0] {
		case "cut":
			err = f.Truncate(arg(2))
		case "flip":
			b := make([]byte, 1)
			must(s.t, readFull(f, b, arg(2)))
			_, err = f.WriteAt([]byte{b[0] ^ 4}, arg(2))
		case "zero":
			_, err = f.WriteAt(make([]byte, arg(3)), arg(2))
		case "soil":
			_, err = f.WriteAt([]byte{0xee}, arg(2))
		}
		must(s.t, err)
		must(s.t, f.Sync())
		must(s.t, f.Close())
	case "open":
		s.open(len(words) > 1)
	case "check":
		damage, err := Check(s.fsys, testDir, func([]byte) error { return nil })
		s.damage(damage, err)
	case "salvage":
		before := files(s.t, s.fsys)
		damage, err := salvaged(s.fsys)
		s.damage(damage, err)
		s.unchanged(before)
		if err == nil {
			s.fsys = load(s.t, filesIn(s.t, s.fsys, salvageDir))
		}
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
}

func (s *story) open(readOnly bool) {
	s.t.Helper()
	before := files(s.t, s.fsys)
	l, err := Open(s.fsys, testDir, Options{SegmentSize: 512, LogID: 7, ReadOnly: readOnly, blockSize: 100})
	if err != nil {
		s.print("error: %v", err)
		s.unchanged(before)
		return
	}
	records, report, err := replayAll(l)
	for i := range records {
		records[i] = strings.TrimSpace(records[i])
	}
	s.print("records: %s", strings.Join(records, " "))
	if err != nil {
		s.print("error: %v", err)
	}
	for _, tear := range report.Torn {
		s.print("torn: %s, %d bytes at %d", tear.File, tear.Length, tear.Offset)
		if tear.Closed {
			s.print("  after the end of a closed log")
		}
		if tear.Records > 0 {
			s.print("  with %d whole records", tear.Records)
		}
	}
	if err != nil || readOnly {
		s.unchanged(before)
		must(s.t, l.Close())
		return
	}
	s.log = l
}

// unchanged checks that no file has changed.
func (s *story) unchanged(before map[string][]byte) {
	s.t.Helper()
	after := files(s.t, s.fsys)
	if !maps.EqualFunc(before, after, bytes.Equal) {
		s.t.Error("files changed")
	}
}

func (s *story) damage(damage []Damage, err error) {
	for _, d := range damage {
		s.print("%v", d)
	}
	if err != nil {
		s.print("error: %v", err)
	}
}
