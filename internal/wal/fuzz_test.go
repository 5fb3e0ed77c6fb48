package wal

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// fuzzLog returns the files of a log of three segments and a preallocated one, as a
// killed process leaves it, with records 0 to n-1.
func fuzzLog(t testing.TB) (all map[string][]byte, n int) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 512, LogID: 7})
	for ; len(l.sealed) < 2 || l.active().end < 300; n++ {
		_, err := l.Append([]byte(fuzzPayload(n)))
		must(t, err)
		must(t, l.Flush())
		if n%3 == 2 {
			must(t, l.Sync())
		}
	}
	must(t, l.Prepare())
	return files(t, fsys), n
}

func fuzzPayload(n int) string {
	return strconv.Itoa(n) + ":" + strings.Repeat(string(rune('a'+n%26)), n*13%60)
}

// mutate changes the files according to data, six bytes per change.
func mutate(all map[string][]byte, data []byte) {
	for ; len(data) >= 6; data = data[6:] {
		names := slices.Sorted(mapKeys(all))
		if len(names) == 0 {
			return
		}
		name := names[int(data[1])%len(names)]
		b := all[name]
		off := int(data[2])<<8 | int(data[3])
		n := int(data[4])
		switch data[0] % 8 {
		case 0: // flips a bit
			if len(b) > 0 {
				b[off%len(b)] ^= data[5]
			}
		case 1: // writes zeros
			if len(b) > 0 {
				off %= len(b)
				clear(b[off:min(off+n, len(b))])
			}
		case 2: // cuts the file
			all[name] = b[:off%(len(b)+1)]
		case 3: // appends bytes
			all[name] = append(b, slices.Repeat([]byte{data[5]}, n)...)
		case 4: // removes the file
			delete(all, name)
		case 5: // renames the file
			delete(all, name)
			all[FileName(uint64(data[5])%8+1)] = b
		case 6: // copies a piece to another place
			from := names[int(data[5])%len(names)]
			if len(b) > 0 && len(all[from]) > 0 {
				copy(b[off/8*8%len(b):], all[from][n*8%len(all[from]):])
			}
		case 7: // exchanges two files
			other := names[int(data[5])%len(names)]
			all[name], all[other] = all[other], all[name]
		}
	}
}

// inOrder checks that records are some of the first n, in order.
func inOrder(t *testing.T, what string, records []string, n int) {
	t.Helper()
	prev := -1
	for _, r := range records {
		number, _, _ := strings.Cut(r, ":")
		i, err := strconv.Atoi(number)
		if err != nil || i >= n || r != fuzzPayload(i) {
			t.Fatalf("%s: invented record %q", what, r)
		}
		if i <= prev {
			t.Fatalf("%s: record %d after %d", what, i, prev)
		}
		prev = i
	}
}

// After any change of the files, Open does not panic, does not invent or reorder records,
// and changes nothing if it refuses. Salvage changes nothing, and its new log contains
// all records that Open found and no invented one.
func FuzzRecover(f *testing.F) {
	base, n := fuzzLog(f)
	places := wholeRecords(base)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		all := make(map[string][]byte)
		for name, b := range base {
			all[name] = slices.Clone(b)
		}
		mutate(all, data)
		fsys := load(t, all)
		records, err := openOnce(fsys)
		inOrder(t, "open", records, n)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if after := files(t, fsys); !maps.EqualFunc(all, after, bytes.Equal) {
				t.Fatal("the log was refused, but files changed")
			}
		}
		fsys = load(t, all)
		if _, err := salvaged(fsys); err != nil {
			if !errors.Is(err, ErrCorrupt) || len(records) > 0 {
				t.Fatal(err)
			}
			return // no header or link is complete
		}
		if after := files(t, fsys); !maps.EqualFunc(all, after, bytes.Equal) {
			t.Fatal("the log was salvaged, and files changed")
		}
		whole, err := openOnce(load(t, filesIn(t, fsys, salvageDir)))
		if err != nil {
			t.Fatalf("salvaged, but: %v", err)
		}
		inOrder(t, "salvaged", whole, n)
		for _, r := range records {
			if !slices.Contains(whole, r) {
				t.Fatalf("%q was not salvaged", r)
			}
		}
		for start, parts := range places {
			record := ""
			for _, p := range parts {
				isThere := func(b []byte) bool {
					h, err := decodeHeader(b)
					return err == nil && h.sequence == p.Segment && len(b) >= int(p.Offset)+len(p.Payload) && bytes.Equal(b[p.Offset:][:len(p.Payload)], p.Payload)
				}
				if !slices.ContainsFunc(slices.Collect(maps.Values(all)), isThere) {
					record = ""
					break
				}
				if payload := payloadOf(p.Payload); isFragment(p.Payload) {
					record += string(payload[fragmentHeader:])
				} else {
					record = string(payload)
				}
			}
			if record != "" && !slices.Contains(whole, record) {
				t.Fatalf("%q is whole at %v, and was not salvaged", record, start)
			}
		}
	})
}

// If any file of a closed log is cut at any length, Open finds all records or refuses.
// Only a cut of the newest segment can cost records, the last ones.
func TestCutAnywhere(t *testing.T) {
	base, _ := fuzzLog(t)
	fsys := load(t, base)
	want, err := openOnce(fsys)
	must(t, err)
	all := files(t, fsys)
	opened := 0
	for name, whole := range all {
		for n := range whole {
			all[name] = whole[:n]
			got, err := openOnce(load(t, all))
			if errors.Is(err, ErrCorrupt) {
				continue
			}
			must(t, err)
			isPrefix := len(got) < len(want) && slices.Equal(got, want[:len(got)])
			if !slices.Equal(got, want) && (name != FileName(3) || !isPrefix) {
				t.Fatalf("%s cut to %d of %d bytes: %d records of %d", name, n, len(whole), len(got), len(want))
			}
			opened++
		}
		all[name] = whole
	}
	if opened == 0 {
		t.Error("no cut log was opened")
	}
}

// wholeRecords returns the records of a log by position, including their parts and
// headers.
func wholeRecords(all map[string][]byte) map[Pos][]Record {
	places := make(map[Pos][]Record)
	for _, name := range slices.Sorted(mapKeys(all)) {
		b := all[name]
		at := Pos{Offset: firstRecord}
		at.Segment, _ = parseName(name)
		for at.Offset < int64(len(b)) {
			part := b[at.Offset:]
			n, internal := recordLength(part)
			if n == 0 {
				break
			}
			start := at
			if f, _, ok := decodeFragment(payloadOf(part)); ok && isFragment(part) {
				start = f.start
			}
			if !internal {
				places[start] = append(places[start], Record{at, part[:Cost(n)]})
			}
			at.Offset += Cost(n)
		}
	}
	return places
}

// openOnce opens and closes a log and returns its records.
func openOnce(fsys *memfs.FS) ([]string, error) {
	l, err := Open(fsys, testDir, Options{SegmentSize: 512, Parallel: 1, blockSize: 128})
	if err != nil {
		return nil, err
	}
	records, _, err := replayAll(l)
	return records, errors.Join(err, l.Close())
}
