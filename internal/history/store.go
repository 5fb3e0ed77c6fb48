package history

import (
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Kind is a part of the history with its own files.
type Kind int

// The kinds.
const (
	Hours Kind = iota // before Minutes, because a receiver sums up only minutes of missing hours
	Minutes
	Changes
	NumKinds
)

func (k Kind) isText() bool { return k == Changes }

const (
	minute = int64(time.Minute / time.Millisecond)
	hour   = 60 * minute
	day    = 24 * hour
)

// kinds contains the names of the files, the time that a file covers, the time after
// which it is removed, and the share of the limit that the kind can use.
var kinds = [NumKinds]struct {
	name         string
	period, keep int64 // ms
	share        int64 // 1/share of the limit
}{
	Hours:   {"hours", day, 31 * day, 1},
	Minutes: {"minutes", hour, day, 1},
	Changes: {"changes", day, 31 * day, 8},
}

// maxSegment is the size at which a segment is complete, and another one follows. In a
// small space, it is a quarter of the space, because the oldest segment is dropped whole.
const maxSegment = 1 << 20

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 32 << 20

// Options configures a Store.
type Options struct {
	FS    vfs.FS
	Dir   string // empty if the history is in memory only
	Limit int64  // maximum size in bytes; 0 stores nothing
	Log   *slog.Logger
}

// A Store is a history. Any goroutine can use its methods, which do not wait for the
// disk.
type Store struct {
	opt   Options
	kinds [NumKinds]segments
	wake  chan struct{} // signals Run that there is something to write or to remove

	// Used only by Run.
	files   map[*segment]*file
	failing bool // whether writes fail
}

// A segments contains the segments of a kind.
type segments struct {
	mu    sync.Mutex
	all   []*segment // the oldest first
	bytes int64      // total size
}

// New returns an empty store.
func New(opt Options) *Store {
	return &Store{opt: opt, wake: make(chan struct{}, 1), files: make(map[*segment]*file)}
}

// add adds a block with a time to the newest segment of a kind, or to a new one. newest
// is the time of the newest block so far.
func (s *Store) add(k Kind, time int64, fill func(g *segment, newest int64)) {
	l, of := &s.kinds[k], &kinds[k]
	l.mu.Lock()
	newest := l.newest()
	var g *segment
	if n := len(l.all); n > 0 {
		g = l.all[n-1]
	}
	space := s.opt.Limit / of.share
	if g == nil || g.sealed || int64(len(g.data)) > min(maxSegment, space/4) || (g.begin-1)/of.period != (time-1)/of.period {
		g = newSegment(k, time)
		l.all = append(l.all, g)
		l.bytes += int64(len(g.data))
	}
	before := len(g.data)
	fill(g, newest)
	l.bytes += int64(len(g.data) - before)
	for len(l.all) > 1 && l.all[0].last() <= time-of.keep-of.period {
		l.drop()
	}
	for l.bytes > space {
		l.drop()
	}
	l.mu.Unlock()
	if !k.isText() { // a turn can add a change, and must not wait for points
		s.bound()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drop drops the oldest segment.
func (l *segments) drop() {
	l.bytes -= int64(len(l.all[0].data))
	l.all = slices.Delete(l.all, 0, 1)
}

// bound drops segments until all kinds are within the limit, starting with the oldest
// minutes.
func (s *Store) bound() {
	total := int64(0)
	for k := range s.kinds {
		l := &s.kinds[k]
		l.mu.Lock()
		total += l.bytes
		l.mu.Unlock()
	}
	for _, k := range []Kind{Minutes, Hours} {
		l := &s.kinds[k]
		l.mu.Lock()
		for total > s.opt.Limit && len(l.all) > 0 {
			total -= int64(len(l.all[0].data))
			l.drop()
		}
		l.mu.Unlock()
	}
}

// AddMinute adds the points of the minute that ends at end, a time in ms, and the points
// of hours that have ended. Points of the same minute are added up. AddMinute reorders
// points.
func (s *Store) AddMinute(end int64, points []Point) {
	s.add(Minutes, end, func(g *segment, _ int64) { g.addPoints(end, points) })
	s.sumHours(end / hour * hour)
}

// sumHours adds the missing hours up to a time, computed from their minutes.
func (s *Store) sumHours(upTo int64) {
	sums := make(map[int64]map[string]*Values)
	from := s.newest(Hours)
	for _, v := range s.views(Minutes, from, "") {
		for _, b := range v.blocks {
			end := roundUp(b.time, hour)
			if end <= from || end > upTo {
				continue
			}
			sum := sums[end]
			if sum == nil {
				sum = make(map[string]*Values)
				sums[end] = sum
			}
			for _, values := range sum {
				values.Add(new(Values)) // a level is 0 if the block has none
			}
			for _, p := range v.points(b) {
				if sum[p.Tube] == nil {
					sum[p.Tube] = new(Values)
				}
				sum[p.Tube].Add(&p.Values)
			}
		}
	}
	for _, end := range slices.Sorted(maps.Keys(sums)) {
		points := make([]Point, 0, len(sums[end]))
		for tube, values := range sums[end] {
			points = append(points, Point{tube, *values})
		}
		s.add(Hours, end, func(g *segment, _ int64) { g.addPoints(end, points) })
	}
}

func roundUp(time, to int64) int64 { return (time + to - 1) / to * to }

// newest returns the time of the newest block of a kind, or 0.
func (s *Store) newest(k Kind) int64 {
	l := &s.kinds[k]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest()
}

func (l *segments) newest() (time int64) {
	for _, g := range l.all {
		time = max(time, g.last())
	}
	return time
}

// A view is a snapshot of a segment. Its data is shared, and never changes.
type view struct {
	data   []byte
	blocks []block
	tubes  []string
	tube   int // number of the requested tube, or -1
}

// views returns the segments of a kind with blocks after a time, oldest first.
func (s *Store) views(k Kind, after int64, tube string) (all []view) {
	l := &s.kinds[k]
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.all {
		if g.last() > after {
			number, ok := g.number[tube]
			if !ok {
				number = -1
			}
			all = append(all, view{g.data, g.blocks, g.tubes, number})
		}
	}
	return all
}

// points decodes a block.
func (v *view) points(b block) (points []Point) {
	for tube, encoded := range pointsIn(v.data[b.off:b.end]) {
		if values, ok := decodeValues(encoded); ok && tube < len(v.tubes) {
			points = append(points, Point{v.tubes[tube], values})
		}
	}
	return points
}

// Series returns n points of a tube, or of the server if tube is empty, oldest first.
// step is a minute or an hour; the last point covers the period that contains end. A
// point is nil if the server recorded nothing in its period. found is false if no point
// has values for the tube.
func (s *Store) Series(tube string, step time.Duration, end time.Time, n int) (points []*Values, found bool) {
	points = make([]*Values, n)
	width := step.Milliseconds()
	first := roundUp(end.UnixMilli(), width) - int64(n-1)*width
	k := Minutes
	if step == time.Hour {
		k = Hours
	}
	for _, v := range s.views(k, first-width, tube) {
		for _, b := range v.blocks {
			at := (b.time - first) / width
			if b.time < first || at >= int64(n) {
				continue
			}
			if points[at] == nil {
				points[at] = new(Values)
			}
			values := v.find(b)
			found = found || values != Values{}
			points[at].Add(&values)
		}
	}
	return points, found
}

// find returns the values of the requested tube.
func (v *view) find(b block) (values Values) {
	if v.tube < 0 {
		return values
	}
	for tube, encoded := range pointsIn(v.data[b.off:b.end]) {
		if tube >= v.tube {
			if tube == v.tube {
				values, _ = decodeValues(encoded)
			}
			break
		}
	}
	return values
}

// AddChange adds a change, given as a text and a time in ms. The store adjusts the time
// so that no two changes have the same time.
func (s *Store) AddChange(time int64, text []byte) {
	s.add(Changes, time, func(g *segment, newest int64) { g.addText(max(time, newest+1), text) })
}

// Changes yields the changes before a time in ms, newest first.
func (s *Store) Changes(before int64) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for _, v := range slices.Backward(s.views(Changes, 0, "")) {
			for _, b := range slices.Backward(v.blocks) {
				if b.time < before && !yield(b.time, v.data[b.off:b.end]) {
					return
				}
			}
		}
	}
}
