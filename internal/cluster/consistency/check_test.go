package consistency

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A fake is a member that has applied entry 7.
type fake struct {
	engine  atomic.Pointer[engine.Engine]
	observe func(entry uint64, changes []engine.Change)
	failed  chan struct{}
}

func (f *fake) Observe(observe func(entry uint64, changes []engine.Change)) error {
	if f.observe = observe; observe != nil {
		observe(7, nil)
	}
	return nil
}

func (f *fake) View(_ bool, view func(*engine.Engine)) (until uint64, err error) {
	view(f.engine.Load())
	return 9, nil
}

func (f *fake) Time() (now, zero int64) { return 1, 1 }

func (f *fake) Failed() <-chan struct{} { return f.failed }

// A check fails if its member replaces its engine, skips entries or stops before the end
// of the check. It also fails if another check replaces it, or if no request uses its
// result.
func TestCheckIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(s *Session, m *fake)
		want      string // text in the error
	}{
		"all is well":     {func(*Session, *fake) {}, ""},
		"entries again":   {func(_ *Session, m *fake) { m.observe(8, nil); m.observe(7, nil); m.observe(9, nil) }, ""},
		"another engine":  {func(_ *Session, m *fake) { m.engine.Store(engine.New(engine.Options{})) }, "leader has changed"},
		"entries skipped": {func(_ *Session, m *fake) { m.observe(9, nil) }, "received a snapshot"},
		"member ends":     {func(_ *Session, m *fake) { close(m.failed) }, "abandoned"},
		"another check":   {func(s *Session, m *fake) { s.Do(m, &Request{Name: 2, Step: stepBegin}) }, "another consistency check"},
		"too long":        {func(*Session, *fake) { time.Sleep(TimeLimit) }, "abandoned"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := new(Session), &fake{failed: make(chan struct{})}
				m.engine.Store(engine.New(engine.Options{}))
				for _, r := range []Request{{Step: stepBegin}, {Step: stepSums, From: 7}} {
					r.Name = 1
					if _, err := s.Do(m, &r); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait() // the first slice covers everything
				c.meanwhile(s, m)
				time.Sleep(4 * slicePause)
				reply, err := s.Do(m, &Request{Name: 1, Step: stepSums})
				if c.want == "" && (err != nil || reply.Until != 9) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%+v, %v, want %q", reply, err, c.want)
				}
			})
		})
	}
}

// The comparison omits items that changed after the start of the first walk, up to the
// last change that a walk can reflect.
func TestLeftOut(t *testing.T) {
	c := &check{applied: 12, until: 10, seen: []item{{6, 1}, {7, 2}, {8, 4}, {9, 8}, {10, 16}, {11, 32}}}
	for entry := uint64(7); entry <= 11; entry++ {
		c.changes = append(c.changes, change{entry, entry})
	}
	sums, err := c.sums(7, 10)
	if err != nil || *sums != (Sums{Jobs: 3, Changed: 3, Hash: 1 + 2 + 32}) {
		t.Errorf("%+v, %v", sums, err)
	}
	if sums, err := c.sums(7, 13); sums != nil || err != nil {
		t.Errorf("before it has applied that: %+v, %v", sums, err)
	}
}
