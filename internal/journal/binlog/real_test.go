package binlog

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// epoch makes the engine's clock start an hour ago, so that times on both sides
// of its zero occur.
func epoch() int64 { return time.Now().Add(-time.Hour).UnixNano() }

// slack is for times: what was said and what is read are some moments apart.
// Delays and ages here differ by much more.
const slack = 100 // s

// A driver puts a beanstalkd through random operations.
type driver struct {
	*beanstalkd
	rng *rand.Rand

	ids    []uint64 // live jobs
	tube   map[uint64]string
	buried []uint64        // in the order of burying
	held   map[uint64]bool // reserved
	loose  map[uint64]bool // jobs whose last operation is not logged
	last   uint64
}

func drive(b *beanstalkd, seed uint64) *driver {
	return &driver{
		beanstalkd: b,
		rng:        rand.New(rand.NewPCG(seed, 0)),
		tube:       make(map[uint64]string),
		held:       make(map[uint64]bool),
		loose:      make(map[uint64]bool),
	}
}

var tubes = []string{"default", "mail", "a+/;.$_()-Z9"}

// delay returns one that is long for the test, in seconds.
func (d *driver) delay() uint32 { return 1000 + d.rng.Uint32N(1<<20) }

func (d *driver) putJob(largest int) {
	body := make([]byte, d.rng.IntN(largest+1))
	for i := range body {
		body[i] = byte(d.rng.Uint32())
	}
	delay := uint32(0)
	if d.rng.IntN(3) == 0 {
		delay = d.delay()
	}
	tube := tubes[d.rng.IntN(len(tubes))]
	id := d.put(tube, d.rng.Uint32(), delay, 1000+d.rng.Uint32N(1000), body)
	d.ids, d.last = append(d.ids, id), id
	d.tube[id] = tube
}

// change does something to a random job.
func (d *driver) change() {
	if len(d.ids) == 0 {
		return
	}
	i := d.rng.IntN(len(d.ids))
	id := d.ids[i]
	if !d.held[id] && d.rng.IntN(4) == 0 {
		if line, _ := d.do("kick-job %d", id); line == "KICKED" {
			d.moved(id)
		}
		return
	}
	if !d.held[id] {
		d.must("RESERVED", "reserve-job %d", id)
	}
	d.held[id], d.loose[id] = true, true
	switch d.rng.IntN(8) {
	case 0: // keep it
	case 1:
		d.must("RELEASED", "release %d %d 0", id, d.rng.Uint32())
		delete(d.held, id)
	case 2, 3:
		d.must("RELEASED", "release %d %d %d", id, d.rng.Uint32(), d.delay())
		d.moved(id)
	case 4, 5, 6:
		d.must("BURIED", "bury %d %d", id, d.rng.Uint32())
		d.moved(id)
		d.buried = append(d.buried, id)
	case 7:
		d.delete(i)
	}
}

// delete deletes the job ids[i].
func (d *driver) delete(i int) {
	id := d.ids[i]
	d.must("DELETED", "delete %d", id)
	d.moved(id)
	d.ids = slices.Delete(d.ids, i, i+1)
}

// moved notes that a job got another state, as the log says too.
func (d *driver) moved(id uint64) {
	delete(d.held, id)
	delete(d.loose, id)
	d.buried = slices.DeleteFunc(d.buried, func(b uint64) bool { return b == id })
}

// toldOf returns a Change as stats-job would tell it now.
func toldOf(c engine.Change, epoch, now int64) told {
	j := told{
		id: c.ID, tube: c.Tube, state: c.State.String(), body: string(c.Body),
		pri: c.Pri, delay: c.Delay, ttr: c.TTR,
		reserves: c.Reserves, timeouts: c.Timeouts, releases: c.Releases, buries: c.Buries, kicks: c.Kicks,
		age: (now - epoch - c.Created) / second,
	}
	if c.State == engine.Delayed {
		j.left = (c.Due - (now - epoch)) / second
	}
	return j
}

var inTold = cmp.Options{
	cmp.AllowUnexported(told{}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".age" || p.Last().String() == ".left" },
		cmp.Comparer(func(a, b int64) bool { return max(a-b, b-a) <= slack })),
}

// compareRead compares what was read with what beanstalkd told before. Of the
// loose jobs it compares what does not change.
func (d *driver) compareRead(got map[uint64]engine.Change, want map[uint64]told, epoch int64) {
	d.tb.Helper()
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		d.tb.Fatalf("read jobs %d, want %d", a, b)
	}
	now := time.Now().UnixNano()
	for id, w := range want {
		g := toldOf(got[id], epoch, now)
		if d.loose[id] {
			g = told{id: g.id, tube: g.tube, body: g.body, ttr: g.ttr, age: g.age}
			w = told{id: w.id, tube: w.tube, body: w.body, ttr: w.ttr, age: w.age}
		}
		if diff := cmp.Diff(w, g, inTold); diff != "" {
			d.tb.Errorf("job %d (- told, + read):\n%s", id, diff)
		}
	}
}

// certain keeps the buried jobs whose place the log tells: not loose, and
// buried by a record that is still there.
func (d *driver) certain(order []uint64, got map[uint64]engine.Change) []uint64 {
	return slices.DeleteFunc(slices.Clone(order), func(id uint64) bool {
		return d.loose[id] || got[id].Due <= firstBurying
	})
}

// TestReal drives a beanstalkd at random and kills it; reads its files and
// compares them with what it told; writes them again, starts a beanstalkd on
// that, and compares again.
func TestReal(t *testing.T) {
	for _, tc := range []struct {
		name      string
		fileSize  string
		steps     int
		most      int  // jobs
		largest   int  // body
		compacted bool // files are removed meanwhile
	}{
		{"one file", "10485760", 400, 1000, 300, false},
		{"1000", "1000", 1000, 40, 60, true},
		{"4096", "4096", 3000, 100, 100, true},
		{"large bodies", "100000", 300, 20, 65535, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			d := drive(startBeanstalkd(t, dir, "-s", tc.fileSize), 1)
			for range tc.steps {
				switch {
				case len(d.ids) > tc.most:
					d.delete(d.rng.IntN(len(d.ids)))
				case d.rng.IntN(3) == 0:
					d.putJob(tc.largest)
				default:
					d.change()
				}
			}
			// The highest id is that of a job that is gone.
			d.must("DELETED", "delete %d", d.put("default", 0, 0, 1, nil))
			d.last++
			want := make(map[uint64]told)
			for _, id := range d.ids {
				want[id], _ = d.job(id)
			}
			migrated, total := d.stat("binlog-records-migrated"), d.total()
			d.kill()
			if total != len(want) {
				t.Fatalf("the test believes in %d jobs, beanstalkd in %d", len(want), total)
			}
			_, err := os.Stat(filepath.Join(dir, "binlog.1"))
			if tc.compacted != (migrated > 0 && os.IsNotExist(err)) {
				t.Fatalf("%d records migrated, binlog.1: %v; the test is to see compaction: %v", migrated, err, tc.compacted)
			}

			opt := Options{Epoch: epoch()}
			eng, report := readWhole(t, vfs.OS, dir, opt)
			got := jobsOf(eng)
			if report.LastID != d.last {
				t.Errorf("last id %d, want %d", report.LastID, d.last)
			}
			t.Logf("%d files, %d jobs, %d of them loose, %d buried", len(report.Files), len(got), len(d.loose), len(d.buried))
			d.compareRead(got, want, opt.Epoch)
			var read []uint64
			all := maps.Clone(got)
			for id, c := range all {
				c.Tube = "" // one order over all tubes
				all[id] = c
			}
			read = buriedOrder(all)[""]
			if a, b := d.certain(read, got), d.certain(d.buried, got); !slices.Equal(a, b) || len(b) == 0 {
				t.Errorf("buried in the order %d, read as %d", b, a)
			}

			testWayBack(t, eng, opt)
		})
	}
}

// testWayBack writes an engine's jobs, starts a beanstalkd on them, and
// compares what it tells with the engine.
func testWayBack(t *testing.T, eng *engine.Engine, opt Options) {
	t.Helper()
	opt.FileSize = 5000
	dir := t.TempDir()
	sum, err := Write(vfs.OS, dir, opt, eng)
	if err != nil {
		t.Fatal(err)
	}
	names, err := Files(vfs.OS, dir)
	if err != nil || len(names) != sum.Files {
		t.Errorf("%v files, error %v; want %d", names, err, sum.Files)
	}

	jobs := jobsOf(eng)
	if sum.Jobs != len(jobs) {
		t.Errorf("%d jobs written, want %d", sum.Jobs, len(jobs))
	}
	b := startBeanstalkd(t, dir, "-z", fmt.Sprint(max(65535, sum.MaxBody+len(bodyEnd))))
	now := time.Now().UnixNano()
	for id, c := range jobs {
		found, _ := b.job(id)
		if diff := cmp.Diff(toldOf(c, opt.Epoch, now), found, inTold); diff != "" {
			t.Errorf("job %d (- written, + told):\n%s", id, diff)
		}
	}
	if n := b.total(); n != len(jobs) {
		t.Errorf("beanstalkd has %d jobs, %d were written", n, len(jobs))
	}
	for tube, want := range buriedOrder(jobs) {
		if got := b.kickAll(tube); !slices.Equal(got, want) {
			t.Errorf("tube %s: buried in the order %d, kicked in the order %d", tube, want, got)
		}
	}
	if id := b.put("default", 0, 0, 1, nil); id != eng.LastID()+1 {
		t.Errorf("the next id is %d, want %d", id, eng.LastID()+1)
	}
	b.kill()
	if text := b.Log.String(); text != "" {
		t.Errorf("beanstalkd complains: %s", text)
	}
}

// TestRealWeaknesses shows what beanstalkd's own replay gets wrong and Read
// gets right, on one log.
func TestRealWeaknesses(t *testing.T) {
	dir := t.TempDir()
	b := startBeanstalkd(t, dir)
	largest := bytes.Repeat([]byte("x"), 65535)
	for _, body := range [][]byte{[]byte("1"), []byte("2"), []byte("3"), largest, []byte("5"), []byte("6")} {
		b.put("default", 0, 0, 60, body)
	}
	for _, id := range []uint64{3, 1, 2} {
		b.must("RESERVED", "reserve-job %d", id)
		b.must("BURIED", "bury %d 0", id)
	}
	b.must("DELETED", "delete 6")
	b.kill()

	eng, report := readWhole(t, vfs.OS, dir, Options{Epoch: epoch()})
	got := jobsOf(eng)
	if order := buriedOrder(got)["default"]; !slices.Equal(order, []uint64{3, 1, 2}) {
		t.Errorf("buried in the order %d", order)
	}
	if got[1].Buries != 1 {
		t.Errorf("buries: %d, want 1", got[1].Buries)
	}
	if !bytes.Equal(got[4].Body, largest) || string(got[5].Body) != "5" {
		t.Error("a job of the largest size, or what follows it, was not read") // B7
	}
	if report.LastID != 6 {
		t.Errorf("last id %d, want 6", report.LastID)
	}

	testWayBack(t, eng, Options{Epoch: epoch()})

	// The judge itself: this is what makes the above worth testing.
	b = startBeanstalkd(t, dir)
	if _, ok := b.job(5); ok {
		t.Error("beanstalkd reads on after a job of the largest size; B7 is gone")
	}
}

// TestRealLastIDOnly is a queue that was emptied: its ids go on.
func TestRealLastIDOnly(t *testing.T) {
	testWayBack(t, engineOf(engine.Change{Kind: engine.LastID, ID: 1 << 40}), Options{Epoch: epoch()})
}
