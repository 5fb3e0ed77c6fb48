package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// A Tube is a tube at some moment.
type Tube struct {
	Name                             string
	Ready, Reserved, Delayed, Buried uint64 // jobs
	Waiting, Watching                uint64 // connections
	Puts, Deletes                    uint64 // since the tube came to be
	Timeouts, Releases               uint64 // the same; 0 where the server does not tell
	PauseLeft                        time.Duration
	Age                              time.Duration // of the job that is next to be reserved, since its put
	AgeKnown                         bool

	// Set by the view.
	PutRate, DeleteRate float64 // a second, since the snapshot before
	BuriedMore          int64   // than when the view began

	// How many there were since the view began.
	TimeoutsMore, ReleasesMore uint64
}

// A Snapshot is a server at some moment.
type Snapshot struct {
	At                               time.Time
	Version                          string // of the server
	Uptime                           time.Duration
	Connections, Waiting             uint64
	Ready, Reserved, Delayed, Buried uint64
	Timeouts                         uint64 // since the server began: reserved jobs whose time to run was over
	Draining                         bool
	Tubes                            []Tube

	// Set by the view: a second, since the snapshot before.
	PutRate, DeleteRate, TimeoutRate float64
}

// A Server is what the view looks at. Its methods may take long; each is called
// beside the view, several at a time.
type Server interface {
	// Snapshot asks for all tubes. Those whose names are given are on the screen: of
	// them it tells all it can, of others what does not cost much.
	Snapshot(onScreen []string) (Snapshot, error)
	Pause(tube string, d time.Duration) error // 0 ends a pause
	Kick(tube string, count int) (int, error) // buried jobs, or delayed ones
	Clear(tube, state string) (int, error)    // delete the jobs of a state
	Look(tube, state string) (string, error)  // the next job of a state, as text
}

// states are the states of jobs that can be looked at and cleared.
var states = []string{"ready", "delayed", "buried"}

// A model is what is shown.
type model struct {
	server Server
	addr   string
	every  time.Duration
	now    func() time.Time

	width, height int
	snap          Snapshot
	err           error // why the last question failed; nil if it did not
	note          note

	columns  []bool          // which are shown; once it is, a column stays
	began    map[string]Tube // as they were when the view began
	sort     int             // in columns
	reverse  bool
	filter   line
	shown    []Tube // those that the filter lets through, sorted
	selected string // name of the tube under the cursor
	cursor   int    // its place in shown
	top      int    // the first that fits on the screen

	ask     *question // that waits for an answer; nil: none
	look    *glance   // the job that is looked at; nil: none
	help    bool
	helpTop int // the first line that is shown
}

// A question is asked before anything that changes something.
type question struct {
	text  string
	doing string // what is said until it is done
	do    tea.Cmd
}

// A note says for a while what was done.
type note struct {
	text   string
	failed bool
	until  time.Time
}

// noteTime is how long a note is shown.
const noteTime = 8 * time.Second

func (m *model) say(text string) { m.note = note{text: text, until: m.now().Add(noteTime)} }

// A glance is a look at a job of a tube.
type glance struct {
	tube  string
	state int // in states
	text  string
}

func newModel(server Server, addr string, every time.Duration) model {
	m := model{server: server, addr: addr, every: every, now: time.Now, width: 80, height: 24, columns: make([]bool, len(columns))}
	for i := range columns {
		m.columns[i] = columns[i].wanted == nil
	}
	return m
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
		m.done(msg)
	case lookMsg:
		if m.look != nil && m.look.tube == msg.tube && states[m.look.state] == msg.state {
			m.look.text = msg.text
		}
	case tea.KeyMsg:
		return m.keys(msg)
	}
	return m, nil
}

// keys does what several keys ask for that were pressed fast, and come together. What
// comes after a question in them is no answer to it.
func (m model) keys(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	if k.Type != tea.KeyRunes || len(k.Runes) == 1 || m.filter.typing {
		return m.key(k)
	}
	if k.Paste {
		return m, nil
	}
	var all []tea.Cmd
	for _, r := range k.Runes {
		next, cmd := m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		m, all = next.(model), append(all, cmd)
		if m.ask != nil {
			break
		}
	}
	return m, tea.Batch(all...)
}

// done says how an action has ended, and shows at once what it has changed.
func (m *model) done(msg doneMsg) {
	if msg.err != nil {
		m.say(msg.err.Error())
		m.note.failed = true
		return
	}
	m.say(msg.note)
	if i := slices.IndexFunc(m.snap.Tubes, func(t Tube) bool { return t.Name == msg.tube }); i >= 0 && msg.change != nil {
		msg.change(&m.snap.Tubes[i])
		m.arrange()
	}
}

// rates sets how much each tube has done since the snapshot before.
func (s *Snapshot) rates(before *Snapshot) {
	took := s.At.Sub(before.At).Seconds()
	if before.At.IsZero() || took <= 0 {
		return
	}
	old := make(map[string]*Tube, len(before.Tubes))
	for i := range before.Tubes {
		old[before.Tubes[i].Name] = &before.Tubes[i]
	}
	for i := range s.Tubes {
		t := &s.Tubes[i]
		if o := old[t.Name]; o != nil && t.Puts >= o.Puts && t.Deletes >= o.Deletes {
			t.PutRate = float64(t.Puts-o.Puts) / took
			t.DeleteRate = float64(t.Deletes-o.Deletes) / took
		}
		s.PutRate += t.PutRate
		s.DeleteRate += t.DeleteRate
	}
	if s.Timeouts >= before.Timeouts {
		s.TimeoutRate = float64(s.Timeouts-before.Timeouts) / took
	}
}

// compare notes what is more than when the view began, and which columns are wanted
// now.
func (m *model) compare(s *Snapshot) {
	if m.began == nil {
		m.began = make(map[string]Tube, len(s.Tubes))
		for i := range s.Tubes {
			m.began[s.Tubes[i].Name] = s.Tubes[i]
		}
	}
	for i := range s.Tubes {
		t := &s.Tubes[i]
		old := m.began[t.Name]
		if t.Puts < old.Puts { // it has gone meanwhile, and come again
			old = Tube{}
		}
		t.BuriedMore = int64(t.Buried) - int64(old.Buried)
		t.TimeoutsMore, t.ReleasesMore = t.Timeouts-min(old.Timeouts, t.Timeouts), t.Releases-min(old.Releases, t.Releases)
		for j := range columns {
			m.columns[j] = m.columns[j] || columns[j].wanted(t)
		}
	}
}

// arrange filters and sorts the tubes, and keeps the cursor on its tube and on the
// screen.
func (m *model) arrange() {
	m.shown = m.shown[:0:0]
	for _, t := range m.snap.Tubes {
		if strings.Contains(t.Name, m.filter.text) {
			m.shown = append(m.shown, t)
		}
	}
	slices.SortFunc(m.shown, func(a, b Tube) int {
		order := cmp.Or(columns[m.sort].less(&a, &b), strings.Compare(a.Name, b.Name))
		if m.reverse {
			return -order
		}
		return order
	})
	if i := slices.IndexFunc(m.shown, func(t Tube) bool { return t.Name == m.selected }); i >= 0 {
		m.cursor = i
	}
	m.moveTo(m.cursor)
}

// moveTo puts the cursor on a line, or the nearest that there is.
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

// onScreen returns the names of the tubes that are on the screen.
func (m *model) onScreen() []string {
	var names []string
	for i := m.top; i < min(len(m.shown), m.top+m.rows()); i++ {
		names = append(names, m.shown[i].Name)
	}
	return names
}

// current returns the tube under the cursor, or nil.
func (m *model) current() *Tube {
	if m.cursor >= len(m.shown) {
		return nil
	}
	return &m.shown[m.cursor]
}

// key does what a key asks for.
func (m model) key(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	switch {
	case k.Type == tea.KeyCtrlC:
		return m, tea.Quit
	case m.ask != nil:
		return m.answer(k)
	case m.filter.typing:
		return m.typeFilter(k)
	case m.help:
		return m.helpKey(k)
	case m.look != nil:
		return m.lookKey(k)
	}
	m.note = note{}
	switch k.String() {
	case "q":
		return m, tea.Quit
	case "?", "h":
		m.help, m.helpTop = true, 0
	case "up", "k":
		m.moveTo(m.cursor - 1)
	case "down", "j":
		m.moveTo(m.cursor + 1)
	case "pgup":
		m.moveTo(m.cursor - m.rows())
	case "pgdown":
		m.moveTo(m.cursor + m.rows())
	case "home", "g":
		m.moveTo(0)
	case "end", "G":
		m.moveTo(len(m.shown) - 1)
	case "right", "s":
		m.sortNext(1)
	case "left":
		m.sortNext(len(columns) - 1)
	case "r":
		m.reverse = !m.reverse
		m.arrange()
	case "/":
		m.filter.typing = true
	case "esc":
		m.filter = line{}
		m.arrange()
	default:
		return m.tubeKey(k.String())
	}
	return m, nil
}

// sortNext sorts by the next column that is shown.
func (m *model) sortNext(step int) {
	m.sort = (m.sort + step) % len(columns)
	for !m.columns[m.sort] {
		m.sort = (m.sort + step) % len(columns)
	}
	m.arrange()
}

// pauseFor is how long the key p pauses a tube.
const pauseFor = time.Hour

// kickCount is how many jobs the key K kicks.
const kickCount = 100

// tubeKey does what a key asks for that concerns the tube under the cursor.
func (m model) tubeKey(key string) (tea.Model, tea.Cmd) {
	t := m.current()
	if t == nil {
		return m, nil
	}
	switch key {
	case "p":
		m.askToPause(t)
	case "K":
		m.askToKick(t)
	case "c":
		m.askToClear(t)
	case "enter":
		m.look = &glance{tube: t.Name, text: "..."}
		return m, m.lookAt(t.Name, states[0])
	}
	return m, nil
}

// askToPause asks before a tube is paused, or its pause is ended.
func (m *model) askToPause(t *Tube) {
	if t.PauseLeft > 0 {
		m.ask = &question{fmt.Sprintf("end the pause of %s, which has %s left? y/n", t.Name, age(t.PauseLeft, true)), "ending the pause of " + t.Name, m.pause(t.Name, 0)}
		return
	}
	m.ask = &question{fmt.Sprintf("pause %s for %s, so that nobody gets its jobs? y/n", t.Name, age(pauseFor, true)), "pausing " + t.Name, m.pause(t.Name, pauseFor)}
}

// askToKick asks before jobs are made ready: buried ones if there are any, else delayed.
func (m *model) askToKick(t *Tube) {
	state, jobs := "buried", t.Buried
	if jobs == 0 {
		state, jobs = "delayed", t.Delayed
	}
	if jobs == 0 {
		m.say(t.Name + " has no jobs to kick")
		return
	}
	m.ask = &question{
		fmt.Sprintf("make %d of the %d %s jobs of %s ready? y/n", min(jobs, kickCount), jobs, state, t.Name),
		"kicking jobs of " + t.Name,
		m.kick(t.Name, kickCount),
	}
}

// askToClear asks before the jobs of the first state that has any are deleted:
// buried ones, then delayed, then ready.
func (m *model) askToClear(t *Tube) {
	for _, s := range []struct {
		state string
		jobs  uint64
	}{{"buried", t.Buried}, {"delayed", t.Delayed}, {"ready", t.Ready}} {
		if s.jobs > 0 {
			m.ask = &question{
				fmt.Sprintf("delete all %s jobs of %s, %d now? y/n", s.state, t.Name, s.jobs),
				"deleting jobs of " + t.Name,
				m.clear(t.Name, s.state),
			}
			return
		}
	}
	m.say(t.Name + " has no jobs to delete")
}

// answer takes a yes, or anything else as a no.
func (m model) answer(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	q := m.ask
	m.ask = nil
	if k.String() == "y" {
		m.say(q.doing + " ...")
		return m, q.do
	}
	m.say("nothing was done")
	return m, nil
}

// helpKey scrolls the help, or goes back to the tubes.
func (m model) helpKey(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	switch k.String() {
	case "up", "k":
		m.helpTop = max(0, m.helpTop-1)
	case "down", "j":
		m.helpTop = max(0, min(m.helpTop+1, len(helpLines)-m.rows()-1))
	default:
		m.help = false
	}
	return m, nil
}

// typeFilter edits the filter.
func (m model) typeFilter(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	switch k.Type {
	case tea.KeyEnter:
		m.filter.typing = false
	case tea.KeyEsc:
		m.filter = line{}
	default:
		m.filter.key(k)
	}
	m.arrange()
	return m, nil
}

// lookKey turns to the job of another state, or back to the tubes.
func (m model) lookKey(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	step := 0
	switch k.String() {
	case "right", "tab":
		step = 1
	case "left":
		step = len(states) - 1
	default:
		m.look = nil
		return m, nil
	}
	m.look = &glance{tube: m.look.tube, state: (m.look.state + step) % len(states), text: "..."}
	return m, m.lookAt(m.look.tube, states[m.look.state])
}
