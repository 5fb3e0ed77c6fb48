package history

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const dir = "/history"

// open returns a store that has read its directory.
func open(t testing.TB, fsys vfs.FS, limit int64) (s *Store, log *bytes.Buffer, usable bool) {
	t.Helper()
	log = new(bytes.Buffer)
	s = New(Options{FS: fsys, Dir: dir, Limit: limit, Log: slog.New(slog.NewTextHandler(log, nil))})
	return s, log, s.load()
}

// point returns a point with values that depend on its tube and minute.
func point(tube string, at int64) Point {
	n := uint64(at/minute) % 50
	p := Point{Tube: tube}
	p.Values[Put], p.Values[Reserves], p.Values[Done], p.Values[Ready], p.Values[Failed] = n+1, n+1, n, 2*n, n/7
	p.Values[WaitP95] = (n + 1) * 1e6
	return p
}

// work adds the minutes between two times, with changes and with a different tube for
// each hour.
func work(s *Store, from, to int64, flush bool) {
	for at := from; at <= to; at += minute {
		s.AddMinute(at, []Point{point("mail", at), point("", at), point(fmt.Sprint("tube-", at/hour), at)})
		s.AddChange(at, fmt.Appendf(nil, "change %d", at))
		if flush {
			s.flush(false)
		}
	}
}

const start = 1000 * day

// check compares the contents of a store with the additions of work. It returns the
// number of minutes.
func check(t *testing.T, s *Store, to int64) (minutes int) {
	t.Helper()
	n := int((to - start) / minute)
	for _, tube := range []string{"", "mail"} {
		points, _ := s.Series(tube, time.Minute, time.UnixMilli(to), n)
		for i, got := range points {
			if got == nil {
				continue
			}
			at := start + int64(i+1)*minute
			want := point(tube, at).Values
			want[WaitP95] = got[WaitP95]
			if *got != want && (*got != Values{}) { // the names of tubes can be lost
				t.Fatalf("%q at %d: %v, want %v", tube, at, got, want)
			}
			minutes++
		}
	}
	for at, text := range s.Changes(to + 1) {
		if got := string(text); got != fmt.Sprint("change ", at) {
			t.Fatalf("change at %d: %q", at, got)
		}
	}
	return minutes / 2
}

// If the power is cut at any operation, complete files survive, and no point or change is
// wrong.
func TestPowerCut(t *testing.T) {
	end := start + 125*minute
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		for cut := 1; ; cut++ {
			fsys := memfs.New()
			fsys.CutAt(cut)
			s, _, _ := open(t, fsys, 1<<20)
			work(s, start+minute, end, true)
			over := fsys.Ops() < cut
			after := fsys.Crash(rand.New(rand.NewPCG(seed, uint64(cut))))
			s, log, usable := open(t, after, 1<<20)
			if !usable {
				t.Fatal(log)
			}
			if minutes := check(t, s, end); over && minutes < 120 {
				t.Fatalf("of two complete hours, %d minutes are left", minutes)
			}
			work(s, end+minute, end+3*minute, true) // goes into a separate file
			if check(t, s, end+3*minute) < 3 || s.failing {
				t.Fatalf("cut at %d: the store does not continue: %s", cut, log)
			}
			if over {
				return
			}
		}
	})
}

// Each file operation fails once, or permanently from then on. The history in memory
// loses nothing, and when the disk works again, it contains the whole history. The log
// contains one line for the failure.
func TestFaults(t *testing.T) {
	end := start + 70*minute
	for _, how := range []faultfs.How{faultfs.Before, faultfs.After, faultfs.Short} {
		for _, sticky := range []bool{false, true} {
			for n := 1; ; n++ {
				disk := memfs.New()
				fsys := faultfs.New(disk, faultfs.Fault{Op: faultfs.Any, N: n, How: how, Sticky: sticky, Err: syscall.ENOSPC})
				s, log, usable := open(t, fsys, 1<<20)
				work(s, start+minute, end, usable)
				if minutes := check(t, s, end); minutes != 70 {
					t.Fatalf("%v %v %d: %d minutes in memory", how, sticky, n, minutes)
				}
				if fsys.Fired() == 0 {
					break
				}
				if lines := strings.Count(log.String(), "level=WARN"); lines > 1 || lines == 0 && how == faultfs.Before && n > 1 { // another error of the call can come first, such as fs.ErrExist
					t.Fatalf("%v %v %d: %s", how, sticky, n, log)
				}
				if !usable {
					continue
				}
				fsys.Set()
				s.flush(true)
				if again, log, _ := open(t, disk, 1<<20); check(t, again, end) != 70 || log.Len() > 0 {
					t.Fatalf("%v %v %d: %d minutes on the disk, %s", how, sticky, n, check(t, again, end), log)
				}
			}
		}
	}
}

// files returns the contents of a directory with some minutes of history.
func files(t testing.TB) map[string][]byte {
	fsys := memfs.New()
	s, _, _ := open(t, fsys, 1<<20)
	work(s, start+56*minute, start+62*minute, false)
	s.flush(true)
	all := make(map[string][]byte)
	names, err := fsys.List(dir)
	if err != nil || len(names) != 4 { // two files contain minutes
		t.Fatal(names, err)
	}
	for _, name := range names {
		all[name], err = s.read(name)
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func write(t testing.TB, all map[string][]byte) *memfs.FS {
	fsys := memfs.New()
	if err := fsys.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	for name, data := range all {
		f, err := fsys.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = f.WriteAt(data, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return fsys
}

// A damaged byte costs its block and the rest of the file. The server logs one line, and
// the rest of the history is correct.
func TestDamage(t *testing.T) {
	all := files(t)
	end := start + 62*minute
	for name, data := range all {
		for at := range data {
			for _, damage := range []func([]byte) []byte{
				func(b []byte) []byte { b[at] ^= 0x55; return b },
				func(b []byte) []byte { return b[:at] },
			} {
				some := map[string][]byte{name: damage(bytes.Clone(data))}
				s, log, usable := open(t, write(t, some), 1<<20)
				check(t, s, end)
				if !usable && !strings.Contains(log.String(), "newer version") {
					t.Fatalf("%s, byte %d: %s", name, at, log)
				}
				if len(some[name]) < len(data) || !usable {
					continue
				}
				g := newSegment(Changes, 0)
				if strings.HasPrefix(name, "minutes") || strings.HasPrefix(name, "hours") {
					g.kind = Minutes
				}
				g.load(data)
				before := slices.IndexFunc(g.blocks, func(b block) bool { return b.end > at })
				blocks := 0
				for k := range s.kinds {
					for _, g := range s.kinds[k].all {
						blocks += len(g.blocks)
					}
				}
				if at < len(header) {
					before = 0
				}
				if blocks != before || strings.Count(log.String(), "history damaged") != 1 {
					t.Fatalf("%s, byte %d: %d blocks, want %d, %s", name, at, blocks, before, log)
				}
			}
		}
	}
}

// An unusable directory is logged once and not changed, and the history stays in memory.
func TestUnusable(t *testing.T) {
	all := files(t)
	newer := map[string][]byte{"minutes.7": []byte("beanpole history 2\nand other bytes")}
	tiny := memfs.New()
	tiny.SetLimit(1 << 20) // less space is free than twice the limit
	for _, test := range []struct {
		name   string
		fsys   vfs.FS
		usable bool
		log    string
	}{
		{"newer", write(t, newer), false, "cannot use the history; keeping a new one in memory\" directory=/history err=\"minutes.7: written by a newer version"},
		{"unreadable", faultfs.New(write(t, all), faultfs.Fault{Op: faultfs.List, N: 1, Err: syscall.EACCES}), false, "cannot use the history"},
		{"read-only", faultfs.New(write(t, all), faultfs.Fault{Op: faultfs.Change, N: 1, Sticky: true, Err: syscall.EROFS}), true, "cannot write the history; keeping it in memory"},
		{"full", tiny, true, "only 1 MB of the disk are free"},
		{"foreign", write(t, map[string][]byte{"minutes": nil, "minutes.x": nil, "hours.-1": nil, "README": []byte("x")}), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, log, usable := open(t, test.fsys, 1<<20)
			end := start + 130*minute
			if work(s, start+63*minute, end, usable); usable != test.usable || check(t, s, end) < 60 {
				t.Errorf("usable: %v; %s", usable, log)
			}
			if lines := strings.Count(log.String(), "\n"); test.log == "" && lines > 0 || test.log != "" && (lines != 1 || !strings.Contains(log.String(), test.log)) {
				t.Error(log)
			}
		})
	}
}

// Each hour is the sum of its minutes, even if the server was restarted during the hour
// or was down at its end.
func TestHours(t *testing.T) {
	fsys := memfs.New()
	s, _, _ := open(t, fsys, 1<<20)
	work(s, start+minute, start+50*minute, true)
	s.flush(true)
	s, _, _ = open(t, fsys, 1<<20)
	work(s, start+hour+10*minute, start+2*hour+20*minute, true)
	for range 2 {
		points, found := s.Series("mail", time.Hour, time.UnixMilli(start+2*hour+20*minute), 4)
		if !found || points[0] != nil || points[3] != nil {
			t.Fatal(points)
		}
		for i, span := range [][2]int64{{start + minute, start + 50*minute}, {start + hour + 10*minute, start + 2*hour}} {
			var want Values
			for at := span[0]; at <= span[1]; at += minute {
				p := point("mail", at)
				want.Add(&p.Values)
			}
			got := *points[i+1]
			if r := float64(got[WaitP95]) / float64(want[WaitP95]); r < 0.8 || r > 1.25 {
				t.Errorf("hour %d: %d ns, want about %d", i, got[WaitP95], want[WaitP95])
			}
			if want[WaitP95] = got[WaitP95]; got != want {
				t.Errorf("hour %d: %v, want %v", i, got, want)
			}
		}
		s.flush(true)
		s, _, _ = open(t, fsys, 1<<20)
	}
	if _, found := s.Series("news", time.Hour, time.UnixMilli(start+hour), 4); found {
		t.Error("an unknown tube has points")
	}
}

// On the disk, the store stays within its limit and drops the oldest minutes first.
// Only the oldest changes are dropped.
func TestLimit(t *testing.T) {
	fsys := memfs.New()
	const limit = 256 << 10
	s, _, _ := open(t, fsys, limit)
	for at := start + minute; at < start+3*day; at += minute {
		points := []Point{point("", at)}
		for i := range 30 {
			points = append(points, point(fmt.Sprint("tube-", i), at))
		}
		s.AddMinute(at, points)
		for range 20 {
			s.AddChange(at, bytes.Repeat([]byte("changes "), 20))
		}
		if at%(7*minute) == 0 {
			s.flush(false)
		}
	}
	s.flush(true)
	size := int64(0)
	names, _ := fsys.List(dir)
	for _, name := range names {
		b, _ := vfs.ReadFile(fsys, filepath.Join(dir, name))
		size += int64(len(b))
	}
	if size > limit || size < limit/3 {
		t.Errorf("%d bytes in %q", size, names)
	}
	points, _ := s.Series("tube-3", time.Hour, time.UnixMilli(start+3*day-hour), 71)
	if points[0] == nil || points[70] == nil {
		t.Error("hours are missing")
	}
	points, _ = s.Series("tube-3", time.Minute, time.UnixMilli(start+3*day-minute), 1440)
	if first := slices.IndexFunc(points, func(v *Values) bool { return v != nil }); first < 100 || points[1439] == nil {
		t.Errorf("the first minute is %d", first)
	}
	for n := range 300 {
		s.AddChange(start+3*day, bytes.Repeat([]byte("changes "), 20))
		kept := 0
		for range s.Changes(start + 9*day) {
			kept++
		}
		if kept < 120 { // the space is sufficient for 180
			t.Errorf("%d changes after %d more", kept, n+1)
		}
	}
	none := New(Options{})
	if work(none, start, start+10*minute, false); none.Newest() != [NumKinds]int64{} {
		t.Error("a store with the limit 0 stores something")
	}
}

// A store receives from another store only the blocks that it lacks.
func TestReceive(t *testing.T) {
	from, to := New(Options{Limit: 1 << 20}), New(Options{Limit: 1 << 20})
	end := start
	for _, minutes := range []int64{1, 3, 0, 90, 5} {
		work(from, end+minute, end+minutes*minute, false)
		end += minutes * minute
		var sent bytes.Buffer
		from.Send(&sent, to.Newest())
		all := sent.Bytes()
		if err := to.Receive(bytes.NewReader(all)); err != nil {
			t.Fatal(err)
		}
		if check(t, to, end) != int((end-start)/minute) || to.Newest() != from.Newest() {
			t.Errorf("%v and %v", to.Newest(), from.Newest())
		}
		for n := 0; n < len(all); n += 11 { // the connection breaks at n
			again := New(Options{Limit: 1 << 20})
			again.Receive(bytes.NewReader(all[:n]))
			check(t, again, end)
		}
	}
}

// Run writes additions, and completes its files at the end.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		s, _, _ := open(t, fsys, 1<<20)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Run(ctx); close(ended) }()
		work(s, start+minute, start+5*minute, false)
		synctest.Wait()
		again, _, _ := open(t, fsys, 1<<20)
		if n := check(t, again, start+5*minute); n != 5 {
			t.Errorf("%d minutes are written", n)
		}
		work(s, start+6*minute, start+7*minute, false)
		cancel()
		<-ended
		again, _, _ = open(t, fsys.Crash(rand.New(rand.NewPCG(1, 2))), 1<<20)
		if n := check(t, again, start+7*minute); n != 7 {
			t.Errorf("%d minutes are durable", n)
		}
	})
}

// FuzzLoad checks that no file crashes the program, and that loaded data survives
// sending.
func FuzzLoad(f *testing.F) {
	for name, data := range files(f) {
		k, _, _ := parseName(name)
		f.Add(int(k), data)
		f.Add(int(k), data[len(data)/2:])
	}
	f.Add(1, []byte(header+mark+"\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, k int, data []byte) {
		kind := Kind(uint(k) % uint(NumKinds))
		g := newSegment(kind, 0)
		if damaged := g.load(data); damaged < 0 || damaged > len(data) {
			t.Fatal(damaged)
		}
		s := New(Options{Limit: 1 << 30})
		s.kinds[kind].all = []*segment{g}
		for _, step := range []time.Duration{time.Minute, time.Hour} {
			s.Series("mail", step, time.UnixMilli(g.last()), 100)
		}
		for range s.Changes(1 << 62) {
		}
		s.AddMinute(start, []Point{point("mail", start)})
		var sent bytes.Buffer
		s.Send(&sent, [NumKinds]int64{})
		if err := New(Options{Limit: 1 << 30}).Receive(&sent); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkSeries reads the points of a tube among 1,000 active ones.
func BenchmarkSeries(b *testing.B) {
	s := New(Options{Limit: DefaultLimit})
	for at := start + minute; at <= start+31*day; at += minute {
		if at < start+30*day {
			at += hour - minute // for the hours, one minute per hour is enough
		}
		points := make([]Point, 1000)
		for i := range points {
			points[i] = point(fmt.Sprint("tube-", i), at)
		}
		s.AddMinute(at, points)
	}
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		b.Run(step.String(), func(b *testing.B) {
			for i := range b.N {
				s.Series(fmt.Sprint("tube-", i%1000), step, time.UnixMilli(start+31*day), int(31*24*time.Hour/time.Hour))
			}
		})
	}
}
