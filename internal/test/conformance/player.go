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
	// patience is the time limit for an expected reply.
	patience = 10 * time.Second

	// quiet is the time for which "nothing arrives" listens.
	quiet = 60 * time.Millisecond

	// moment is the time for the server to read the data of one connection before the
	// conversation continues on another.
	moment = 40 * time.Millisecond

	// tick is the pause before each step. It is negligible in real time. In fake time, it
	// advances the clock between two commands.
	tick = time.Millisecond
)

// Run plays every transcript, many at once, each with a new server. If a transcript
// fails, it is repeated alone, up to attempts times: a busy machine cannot keep the
// pauses of a transcript, and beanstalkd sometimes loses the timer of a connection that
// only waits (its issues 262 and 380).
func Run(t *testing.T, s Server, d Dialect) {
	var mu sync.Mutex
	var again []*Transcript
	t.Run("together", func(t *testing.T) {
		each(t, func(t *testing.T, tr *Transcript) {
			t.Parallel()
			if err := tr.try(t, s, d); err != nil {
				t.Log("to be played again alone:", err)
				mu.Lock()
				defer mu.Unlock()
				again = append(again, tr)
			}
		})
	})
	for _, tr := range again {
		t.Run(tr.Name, func(t *testing.T) {
			if err := insist(func() error { return tr.try(t, s, d) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const attempts = 3

// insist calls play until it succeeds, at most attempts times.
func insist(play func() error) (err error) {
	for range attempts {
		if err = play(); err == nil {
			return nil
		}
	}
	return err
}

// RunInBubble plays every transcript in its own testing/synctest bubble, for servers that
// run in this process and do no real I/O.
func RunInBubble(t *testing.T, s Server, d Dialect) {
	each(t, func(t *testing.T, tr *Transcript) {
		synctest.Test(t, func(t *testing.T) {
			if err := tr.try(t, s, d); err != nil {
				t.Fatal(err)
			}
		})
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

// try plays the transcript, and returns the first difference as an error. The server runs
// until the end of the test.
func (t *Transcript) try(tb testing.TB, s Server, d Dialect) error {
	tb.Helper()
	if t.Since != "" && d.V112 {
		tb.Skipf("describes beanstalkd %s and later", t.Since)
	}
	return t.converse(s.Start(tb, t.Args), d)
}

// converse plays the steps up to the first difference.
func (t *Transcript) converse(in Instance, d Dialect) error {
	p := &player{in: in, dialect: d, streams: make(map[string]*stream)}
	defer p.close()
	for i := range t.steps {
		s := &t.steps[i]
		if !d.plays(s.side) {
			continue
		}
		time.Sleep(tick)
		got, err := p.play(s)
		if err != nil {
			return fmt.Errorf("testdata/%s.txt:%d: %w", t.Name, s.line, err)
		}
		if got != nil {
			return fmt.Errorf("testdata/%s.txt:%d: the answer differs\nwant %s\ngot  %s", t.Name, s.line, s.text, strings.Join(got, indent))
		}
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
	current string             // connection of the last step
}

// play performs one step. If it receives a wrong reply, it returns the received data as
// lines of a transcript.
func (p *player) play(s *step) (got []string, err error) {
	switch s.verb {
	case wait:
		time.Sleep(s.pause)
		return nil, nil
	case drain:
		err := p.in.Drain()
		time.Sleep(moment)
		return nil, err
	}
	if s.conn != p.current {
		p.letRead(p.current)
		p.current = s.conn
	}
	st, err := p.stream(s)
	if err != nil {
		return nil, err
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
		return p.answer(s, st), nil
	}
	return nil, err
}

// letRead pauses if the server might not have read the data sent on the connection.
func (p *player) letRead(conn string) {
	if st := p.streams[conn]; st != nil && st.pending {
		time.Sleep(moment)
		st.pending = false
	}
}

// stream returns the connection of a step. The first step of a connection opens it.
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

// answer reads the reply that a step expects. If the reply differs, it returns the
// received data as lines of a transcript.
func (p *player) answer(s *step, st *stream) (got []string) {
	head := s.head()
	switch s.verb {
	case expectNone, expectEnd:
		want, within := errNothing, quiet
		if s.verb == expectEnd {
			want, within = errClosed, patience
		}
		if err := st.fill(len(st.buf)+1, within); errors.Is(err, want) && len(st.buf) == 0 {
			st.pending = false
			return nil
		}
	case expectRaw:
		data, _ := st.take(len(s.data), patience)
		if bytes.Equal(data, s.data) {
			return nil
		}
		if len(data) > 0 {
			got = []string{head + "<< " + strconv.Quote(string(data))}
		}
	default:
		if r, err := p.receive(st, patience); err == nil {
			if s.accepts(&r) {
				return nil
			}
			got = r.lines(head)
		}
	}
	// Add all data that arrives before a silence.
	for {
		r, err := p.receive(st, quiet)
		if err == nil {
			got = append(got, r.lines(head)...)
			continue
		}
		st.pending = false
		if len(st.buf) > 0 {
			got = append(got, head+"<< "+strconv.Quote(string(st.buf)))
			st.buf = nil
		}
		if errors.Is(err, errClosed) {
			got = append(got, head+"< (closed)")
		} else if len(got) == 0 {
			got = append(got, head+"< (nothing)")
		}
		return got
	}
}

// finish checks that no further data has arrived.
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

// head returns the start of the step's line: the mark and the connection.
func (s *step) head() string {
	switch s.side {
	case ours:
		return "ours " + s.conn
	case real:
		return "real " + s.conn
	}
	return s.conn
}

// textLine renders a received line.
func textLine(head string, line []byte) string {
	return strings.TrimSuffix(head+"< "+escape(line), " ")
}
