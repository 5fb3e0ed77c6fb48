package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A Tube is the state of a tube at the time of a snapshot.
type Tube struct {
	admin.Tube // OldestReady is not available through the protocol

	// The view sets these fields.
	putRate, deleteRate float64 // per second since the previous snapshot
	buriedMore          int64   // growth since the view started

	found []health.Finding // worst first
}

// A Snapshot is the state of a server at a point in time.
type Snapshot struct {
	client.ServerStats
	At    time.Time
	Tubes []Tube
	Found []health.Finding // findings of the server, worst first; nil if the server does not report findings

	// The view sets these fields: rates per second since the previous snapshot.
	putRate, deleteRate, timeoutRate float64

	found []health.Finding // findings about the server, worst first
}

// A Server is the server that the view shows. Its methods can block, and must be safe for
// concurrent use.
type Server interface {
	Snapshot() (Snapshot, error)              // returns all tubes
	Pause(tube string, d time.Duration) error // a duration of 0 ends the pause
	Kick(tube string, count int) (int, error) // kicks buried jobs or, if there are none, delayed jobs
	Look(tube, state string) (string, error)  // returns the next job in a state, as text
}

// A model is the state of the view. It implements tea.Model.
type model struct {
	server Server
	addr   string
	every  time.Duration
	now    func() time.Time

	width, height int
	snap          Snapshot
	err           error // error of the last snapshot, or nil
	note          note

	first    *Snapshot // first snapshot of the view
	began    map[string]*Tube
	sort     int // index in columns
	filter   string
	typing   bool   // whether keys edit the filter
	shown    []Tube // tubes that match the filter, sorted
	selected string // name of the tube under the cursor
	cursor   int    // its index in shown
	top      int    // index in shown of the first tube on the screen

	ask  *question // question that waits for an answer, or nil
	look *glance   // open job preview, or nil
	help bool
}

// A question asks the user to confirm a change.
type question struct {
	text  string
	doing string // text while the action runs
	do    func() (note string, err error)
}

// A note shows the result of an action for some time.
type note struct {
	text   string
	failed bool
	until  time.Time
}

// noteTime is the time for which a note is visible.
const noteTime = 8 * time.Second

func (m *model) say(text string) {
	m.note = note{text: cliutil.Line(text), until: m.now().Add(noteTime)}
}

// A glance shows a job of a tube.
type glance struct {
	tube  string
	state int // index in op.IdleStates
	text  string
}

func newModel(server Server, addr string, every time.Duration) model {
	return model{server: server, addr: addr, every: every, now: time.Now, width: 80, height: 24}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return tea.Batch(m.snapshot(), clock()) }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.arrange()
	case snapshotMsg:
		if m.err = msg.err; msg.err == nil {
			msg.snap.rates(&m.snap)
			m.compare(&msg.snap)
			m.snap = msg.snap
			m.arrange()
		}
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return tickMsg{} })
	case tickMsg:
		return m, m.snapshot()
	case clockMsg:
		if m.now().After(m.note.until) {
			m.note = note{}
		}
		return m, clock()
	case doneMsg:
		m.say(msg.note)
		if msg.err != nil {
			m.say(msg.err.Error())
			m.note.failed = true
		}
	case lookMsg:
		if m.look != nil && m.look.tube == msg.tube && op.IdleStates[m.look.state] == msg.state {
			m.look.text = msg.text
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m, nil
}

// rates sets the rates since the previous snapshot.
func (s *Snapshot) rates(before *Snapshot) {
	took := s.At.Sub(before.At).Seconds()
	if before.At.IsZero() || took <= 0 {
		return
	}
	old := byName(before.Tubes)
	for i := range s.Tubes {
		t := &s.Tubes[i]
		if o, there := old[t.Name]; there && t.TotalJobs >= o.TotalJobs && t.Deletes >= o.Deletes {
			t.putRate = float64(t.TotalJobs-o.TotalJobs) / took
			t.deleteRate = float64(t.Deletes-o.Deletes) / took
		}
		s.putRate += t.putRate
		s.deleteRate += t.deleteRate
	}
	if s.JobTimeouts >= before.JobTimeouts {
		s.timeoutRate = float64(s.JobTimeouts-before.JobTimeouts) / took
	}
}

func byName(tubes []Tube) map[string]*Tube {
	all := make(map[string]*Tube, len(tubes))
	for i := range tubes {
		all[tubes[i].Name] = &tubes[i]
	}
	return all
}

// compare sets the findings, and the growth since the view started.
func (m *model) compare(s *Snapshot) {
	if m.first == nil {
		m.first, m.began = new(*s), byName(slices.Clone(s.Tubes))
	}
	s.sortFindings()
	for i := range s.Tubes {
		t := &s.Tubes[i]
		old := m.began[t.Name]
		if old == nil || t.TotalJobs < old.TotalJobs { // the tube was removed and created again
			old = new(Tube)
		}
		t.buriedMore = int64(t.Jobs.Buried) - int64(old.Jobs.Buried)
		if s.Found == nil {
			t.look(s.At.Sub(m.first.At))
		}
	}
}

// arrange filters and sorts the tubes. It keeps the cursor on its tube and on the screen.
func (m *model) arrange() {
	m.shown = m.shown[:0:0]
	for _, t := range m.snap.Tubes {
		if strings.Contains(t.Name, m.filter) {
			m.shown = append(m.shown, t)
		}
	}
	slices.SortFunc(m.shown, func(a, b Tube) int {
		return cmp.Or(columns[m.sort].less(&a, &b), strings.Compare(a.Name, b.Name))
	})
	if i := slices.IndexFunc(m.shown, func(t Tube) bool { return t.Name == m.selected }); i >= 0 {
		m.cursor = i
	}
	m.moveTo(m.cursor)
}

// moveTo moves the cursor to a line, or to the nearest existing line.
func (m *model) moveTo(line int) {
	m.cursor = max(0, min(line, len(m.shown)-1))
	m.selected = ""
	if len(m.shown) > 0 {
		m.selected = m.shown[m.cursor].Name
	}
	rows := m.rows()
	m.top = max(0, min(m.top, m.cursor, len(m.shown)-rows))
	m.top = max(m.top, m.cursor-rows+1)
}

// current returns the tube under the cursor, or nil.
func (m *model) current() *Tube {
	if m.cursor >= len(m.shown) {
		return nil
	}
	return &m.shown[m.cursor]
}
