package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// patience is how long an answer that must come may take.
	patience = 10 * time.Second

	// quiet is how long "nothing arrives" listens.
	quiet = 60 * time.Millisecond

	// moment is what the server gets to read what was sent on one connection
	// before the conversation goes on with another one.
	moment = 40 * time.Millisecond

	// tick passes before each step. It is nothing in real time; on fake time
	// it makes the clock move between two commands as it does in real life.
	tick = time.Millisecond
)

// Run plays every transcript against a server of its own, many at once. One that fails
// fails the test, unless the machine was too busy to keep the pauses of the transcript:
// then it is played again alone.
func Run(t *testing.T, s Server, d Dialect) { run(t, s, d, 1) }

// run is Run where a transcript may fail so often, less once, before it fails the test.
func run(t *testing.T, s Server, d Dialect, chances int) {
	var mu sync.Mutex
	var again []*Transcript
	t.Run("together", func(t *testing.T) {
		each(t, func(t *testing.T, tr *Transcript) {
			t.Parallel()
			if late, err := timed(func() ([]Instance, error) { return tr.try(t, s, d) }); err != nil {
				if late < tooLate && chances == 1 {
					t.Fatal(err)
				}
				t.Logf("to be played again alone; the machine was %v late: %v", late, err)
				mu.Lock()
				defer mu.Unlock()
				again = append(again, tr)
			}
		})
	})
	for _, tr := range again {
		t.Run(tr.Name, func(t *testing.T) {
			play := func() (time.Duration, error) {
				return timed(func() ([]Instance, error) { return tr.try(t, s, d) })
			}
			if err := insist(chances, play); err != nil {
				t.Fatal(err)
			}
		})
	}
	if len(again) > 0 {
		t.Logf("%d transcripts were played again", len(again))
	}
}

const (
	// tooLate is how late a machine may be with what is due, here or in a server, and still keep the
	// pauses of a transcript, of which the shortest are a moment.
	tooLate = moment / 2

	// attempts is how often a transcript is played before the machine is held to be too
	// busy for it.
	attempts = 8
)

// insist plays until it succeeds, or has failed so often on a machine that was in time.
func insist(chances int, play func() (late time.Duration, err error)) (err error) {
	for range attempts {
		var late time.Duration
		if late, err = play(); err == nil {
			return nil
		}
		if late < tooLate {
			chances--
		}
		if chances == 0 {
			break
		}
	}
	return err
}

// timed plays with some servers, and tells how late the machine was meanwhile: with a timer of this process, or
// with a processor for a server's.
func timed(play func() ([]Instance, error)) (late time.Duration, err error) {
	stop := make(chan struct{})
	latest := make(chan time.Duration)
	go func() {
		var late time.Duration
		for {
			due := time.Now().Add(tick)
			select {
			case <-time.After(tick):
				late = max(late, time.Since(due))
			case <-stop:
				latest <- late
				return
			}
		}
	}()
	defer func() {
		close(stop)
		late = max(late, <-latest)
	}()
	servers, err := play()
	for _, in := range servers {
		if p, ok := in.(*processInstance); ok {
			late = max(late, p.delayed())
		}
	}
	return late, err
}

// RunInBubble plays every transcript inside a testing/synctest bubble of its
// own, for servers that run in this process and do no real I/O.
func RunInBubble(t *testing.T, s Server, d Dialect) {
	each(t, func(t *testing.T, tr *Transcript) {
		synctest.Test(t, func(t *testing.T) { tr.Play(t, s, d) })
	})
}

func each(t *testing.T, play func(*testing.T, *Transcript)) {
	list, err := Transcripts()
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range list {
		t.Run(tr.Name, func(t *testing.T) { play(t, tr) })
	}
}

// Play starts a server, plays the transcript against it and fails the test at
// the first answer that differs.
func (t *Transcript) Play(tb testing.TB, s Server, d Dialect) {
	tb.Helper()
	if _, err := t.try(tb, s, d); err != nil {
		tb.Fatal(err)
	}
}

// try is Play without a verdict. It also returns the server, which runs until the end of the test.
func (t *Transcript) try(tb testing.TB, s Server, d Dialect) ([]Instance, error) {
	tb.Helper()
	if t.Since != "" && d.LooseTimeouts {
		tb.Skipf("describes beanstalkd %s and later", t.Since)
	}
	in := s.Start(tb, t.Args)
	return []Instance{in}, t.converse(in, d, nil)
}

// converse plays the steps. With a nil hook it stops at the first difference.
// Otherwise the hook gets what came instead, as lines of a transcript, and the
// conversation goes on.
func (t *Transcript) converse(in Instance, d Dialect, differs func(s *step, got []string)) error {
	p := &player{in: in, dialect: d, streams: make(map[string]*stream)}
	defer p.close()
	for i := range t.steps {
		s := &t.steps[i]
		if !d.plays(s.side) {
			continue
		}
		time.Sleep(tick)
		got, same, err := p.play(s)
		if err != nil {
			return fmt.Errorf("testdata/%s.txt:%d: %w", t.Name, s.first, err)
		}
		if same {
			continue
		}
		if differs == nil {
			return fmt.Errorf("testdata/%s.txt:%d: the answer differs\nwant %s\ngot  %s",
				t.Name, s.first, strings.Join(s.render(), "\n     "), strings.Join(got, "\n     "))
		}
		differs(s, got)
	}
	if err := p.finish(); err != nil {
		return fmt.Errorf("testdata/%s.txt: at the end: %w", t.Name, err)
	}
	return nil
}

type player struct {
	in      Instance
	dialect Dialect
	streams map[string]*stream // open connections by name
	current string             // the connection of the last step
}

// play does one step. For an answer it returns what came, as lines of a
// transcript, and whether it is what the step asks for.
func (p *player) play(s *step) (got []string, same bool, err error) {
	switch s.verb {
	case wait:
		time.Sleep(s.pause)
		return nil, true, nil
	case drain:
		err := p.in.Drain()
		time.Sleep(moment)
		return nil, true, err
	}
	if s.conn != p.current {
		p.letRead(p.current)
		p.current = s.conn
	}
	st, err := p.stream(s)
	if err != nil {
		return nil, false, err
	}
	switch s.verb {
	case open:
		time.Sleep(moment)
	case send:
		err = st.send(s.data)
	case halfClose:
		err = st.halfClose()
	case closeConn:
		p.letRead(s.conn)
		st.close()
		delete(p.streams, s.conn)
		time.Sleep(moment)
	default:
		got, same = p.answer(s, st)
		return got, same, nil
	}
	return nil, err == nil, err
}

// letRead gives the server a moment if it may not have read yet what was sent
// on the connection.
func (p *player) letRead(conn string) {
	if st := p.streams[conn]; st != nil && st.pending {
		time.Sleep(moment)
		st.pending = false
	}
}

// stream returns the connection of a step; its first mention opens it.
func (p *player) stream(s *step) (*stream, error) {
	if st := p.streams[s.conn]; st != nil {
		return st, nil
	}
	if s.verb != send && s.verb != open {
		return nil, fmt.Errorf("%s is not connected", s.conn)
	}
	conn, err := p.in.Dial()
	if err != nil {
		return nil, err
	}
	st := newStream(conn)
	p.streams[s.conn] = st
	return st, nil
}

// answer reads what a step asks for.
func (p *player) answer(s *step, st *stream) (got []string, same bool) {
	head := s.head()
	switch s.verb {
	case expectLine:
		line, err := st.line(patience)
		if err != nil {
			return p.absent(s, st, err), false
		}
		same, _ := matches(s.pattern, line)
		return []string{textLine(head, line)}, same
	case expectRaw:
		data, err := st.take(len(s.data), patience)
		if err != nil && len(data) == 0 {
			return p.absent(s, st, err), false
		}
		return []string{head + "<< " + strconv.Quote(string(data))}, bytes.Equal(data, s.data)
	case expectDict, expectList:
		return p.data(s, st)
	case expectNone:
		err := st.fill(len(st.buf)+1, quiet)
		if errors.Is(err, errNothing) && len(st.buf) == 0 {
			st.pending = false
			return nil, true
		}
		return p.whatever(s, st), false
	case expectEnd:
		err := st.fill(len(st.buf)+1, patience)
		if errors.Is(err, errClosed) && len(st.buf) == 0 {
			return nil, true
		}
		return p.whatever(s, st), false
	default: // expectAny
		return p.whatever(s, st), false
	}
}

// absent renders an answer that did not come whole.
func (p *player) absent(s *step, st *stream, err error) []string {
	lines := p.whatever(s, st)
	if len(lines) == 1 && errors.Is(err, errClosed) {
		return []string{s.head() + "< (closed)"}
	}
	return lines
}

// whatever renders all that arrives until there is silence.
func (p *player) whatever(s *step, st *stream) (lines []string) {
	for {
		line, err := st.line(quiet)
		switch {
		case err == nil && bytes.HasPrefix(line, []byte("OK ")):
			g := step{conn: s.conn, side: s.side, verb: expectDict}
			entries, isList, err := p.readYAML(line, st)
			if err != nil {
				lines = append(lines, textLine(s.head(), line))
				continue
			}
			if isList {
				g.verb = expectList
			}
			g.entries = verbatim(entries)
			lines = append(lines, g.render()...)
		case err == nil:
			lines = append(lines, textLine(s.head(), line))
		default:
			st.pending = false
			if len(st.buf) > 0 {
				lines = append(lines, s.head()+"<< "+strconv.Quote(string(st.buf)))
				st.buf = nil
			}
			if errors.Is(err, errClosed) {
				lines = append(lines, s.head()+"< (closed)")
			} else if len(lines) == 0 {
				lines = append(lines, s.head()+"< (nothing)")
			}
			return lines
		}
	}
}

// finish makes sure that nothing arrived that the transcript does not mention.
func (p *player) finish() error {
	time.Sleep(moment)
	for _, name := range slices.Sorted(maps.Keys(p.streams)) {
		st := p.streams[name]
		st.fill(len(st.buf)+1, tick)
		if len(st.buf) > 0 {
			return fmt.Errorf("%s received more: %q", name, st.buf)
		}
	}
	return nil
}

func (p *player) close() {
	for _, st := range p.streams {
		st.close()
	}
}

// head is how a line of the step begins: the mark and the connection.
func (s *step) head() string {
	switch s.side {
	case ours:
		return "ours " + s.conn
	case real:
		return "real " + s.conn
	}
	return s.conn
}

// textLine renders a line that was received.
func textLine(head string, line []byte) string {
	return strings.TrimSuffix(head+"< "+escape(line), " ")
}

// render returns an answer as lines of a transcript.
func (s *step) render() []string {
	switch s.verb {
	case expectLine:
		return []string{s.head() + "< " + s.pattern}
	case expectRaw:
		return []string{s.head() + "<< " + strconv.Quote(string(s.data))}
	case expectNone:
		return []string{s.head() + "< (nothing)"}
	case expectEnd:
		return []string{s.head() + "< (closed)"}
	case expectAny:
		return []string{s.head() + "< ?"}
	}
	kind, mark := "dict", ""
	switch {
	case s.verb == expectList:
		kind, mark = "list", "- "
	default:
		kind += string(s.scope)
	}
	lines := []string{s.head() + "< OK " + kind}
	for _, e := range s.entries {
		text := "     " + mark + e.key
		if s.verb == expectDict {
			text += ": " + e.value
		}
		lines = append(lines, text)
	}
	return lines
}
