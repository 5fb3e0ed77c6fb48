package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// maxFile is the minimum size of files that cannot belong to a store.
const maxFile = 16 << 20

// Run reads the directory and then writes additions until ctx ends. It must be
// called once. Without a directory, or if it cannot be used, Run returns early, and the
// history stays in memory.
func (s *Store) Run(ctx context.Context) {
	if s.opt.Dir == "" || s.opt.Limit == 0 || !s.load() {
		return
	}
	for {
		select {
		case <-ctx.Done():
			s.flush(true)
			return
		case <-s.wake:
			s.flush(false)
		}
	}
}

// errNewer means that a later version wrote a file.
var errNewer = errors.New("written by a newer version of beanpole; run that version, or move the directory away")

// load reads all files. It reports whether the directory can be used.
func (s *Store) load() bool {
	names, err := s.opt.FS.List(s.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var read [NumKinds][]*segment
	files, damaged := 0, 0
	for _, name := range names {
		k, begin, ok := parseName(name)
		if !ok {
			continue
		}
		g := newSegment(k, begin)
		data, failed := s.read(name)
		if version(data) > 1 {
			err = fmt.Errorf("%s: %w", name, errNewer)
			break
		}
		bad := g.load(data)
		if failed != nil || bad > 0 {
			files, damaged = files+1, damaged+bad
		}
		s.files[g] = &file{name: name}
		read[k] = append(read[k], g)
	}
	if err != nil {
		s.opt.Log.Warn("cannot use the history; keeping a new one in memory", "directory", s.opt.Dir, "err", err)
		return false
	}
	if files > 0 {
		s.opt.Log.Warn("history damaged; the rest of these files is ignored", "directory", s.opt.Dir, "files", files, "bytes", damaged)
	}
	for k, all := range read {
		slices.SortStableFunc(all, func(a, b *segment) int { return cmp.Compare(a.begin, b.begin) })
		l := &s.kinds[k]
		l.mu.Lock()
		l.all = append(all, l.all...)
		for _, g := range all {
			l.bytes += int64(len(g.data))
		}
		for l.bytes > s.opt.Limit/kinds[k].share {
			l.drop()
		}
		l.mu.Unlock()
	}
	s.bound()
	return true
}

// version returns the version in the header of a file. It returns 0 for a damaged header.
func version(data []byte) int {
	n := 0
	fmt.Sscanf(string(data[:min(len(data), len(header)+8)]), magic+"%d\n", &n)
	return n
}

// read returns the contents of a file. After an error, the result is incomplete.
func (s *Store) read(name string) ([]byte, error) {
	f, err := s.opt.FS.Open(filepath.Join(s.opt.Dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _, err := f.Stat()
	if err != nil || size > maxFile {
		return nil, cmp.Or(err, errors.New("too large"))
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data[:n], err
}

func parseName(name string) (k Kind, begin int64, ok bool) {
	kind, digits, _ := strings.Cut(name, ".")
	begin, err := strconv.ParseInt(digits, 10, 64)
	for k := range NumKinds {
		if kinds[k].name == kind && err == nil && begin >= 0 {
			return k, begin, true
		}
	}
	return 0, 0, false
}

// A file is the file of a segment.
type file struct {
	name     string
	vfs.File     // nil if the file is complete
	written  int // bytes of the segment that were written
}

// flush writes new blocks, completes segments that are followed by another segment, and
// removes the files of dropped segments. If end is true, it completes all segments. It
// logs only the first of several errors.
func (s *Store) flush(end bool) {
	var failed error
	kept := make(map[*segment]bool)
	for k := range s.kinds {
		l := &s.kinds[k]
		l.mu.Lock()
		all := slices.Clone(l.all)
		l.mu.Unlock()
		for i, g := range all {
			kept[g] = true
			if err := s.write(l, g, end || i < len(all)-1); err != nil {
				failed = err
			}
		}
	}
	for g, f := range s.files {
		if kept[g] {
			continue
		}
		if f.File != nil {
			f.Close()
		}
		if err := s.opt.FS.Remove(filepath.Join(s.opt.Dir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed, f.File = err, nil // the next flush removes it
			continue
		}
		delete(s.files, g)
	}
	switch {
	case failed != nil && !s.failing:
		s.opt.Log.Warn("cannot write the history; keeping it in memory", "directory", s.opt.Dir, "err", failed)
	case failed == nil && s.failing:
		s.opt.Log.Info("writing the history again", "directory", s.opt.Dir)
	}
	s.failing = failed != nil
}

// write writes the new blocks of a segment. A complete segment gets no more blocks.
func (s *Store) write(l *segments, g *segment, complete bool) (err error) {
	f := s.files[g]
	if f == nil {
		if f, err = s.create(g); err != nil {
			return err
		}
		s.files[g] = f
	}
	if f.File == nil {
		return nil
	}
	l.mu.Lock()
	data := g.data
	l.mu.Unlock()
	if f.written < len(data) {
		if err := s.room(); err != nil {
			return err
		}
		if _, err := f.WriteAt(data[f.written:], int64(f.written)); err != nil {
			return err
		}
		f.written = len(data)
	}
	if complete {
		if err := f.Sync(); err != nil {
			return err
		}
		if err := s.opt.FS.SyncDir(s.opt.Dir); err != nil {
			return err
		}
		f.Close()
		f.File = nil
		l.mu.Lock()
		g.data, g.sealed = slices.Clip(g.data), true
		l.mu.Unlock()
	}
	return nil
}

// create creates the file of a segment.
func (s *Store) create(g *segment) (*file, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	if err := s.opt.FS.Mkdir(s.opt.Dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for begin := g.begin; ; begin++ {
		name := kinds[g.kind].name + "." + strconv.FormatInt(begin, 10)
		f, err := s.opt.FS.Create(filepath.Join(s.opt.Dir, name))
		if errors.Is(err, fs.ErrExist) {
			continue // belongs to an earlier process
		}
		return &file{name: name, File: f}, err
	}
}

// room returns an error if the disk has so little space that the journal needs all of it.
func (s *Store) room() error {
	free, err := s.opt.FS.Free(filepath.Dir(s.opt.Dir))
	if err == nil && free < 2*s.opt.Limit {
		err = fmt.Errorf("only %d MB of the disk are free", free>>20)
	}
	return err
}
