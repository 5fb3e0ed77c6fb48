package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// lowest is how many lines a terminal must have for the rates of the whole server.
const lowest = 10

// minName is how wide long names of tubes are at least.
const minName = 12

var (
	bold     = lipgloss.NewStyle().Bold(true)
	reversed = lipgloss.NewStyle().Reverse(true)
	alarming = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	faint    = lipgloss.NewStyle().Faint(true)
)

const helpText = `up, down, page up, page down, home, end   move
left, right   sort by another column      r   reverse the order
/             show tubes whose name has a text; esc: all
enter         look at the next ready, delayed or buried job
p             pause the tube for an hour, or end its pause
k             kick up to 100 jobs: buried ones, or else delayed
c             delete all buried, delayed or ready jobs; asks first
q             quit

AGE       since the put of the job that is next to be reserved
WAITING   workers with nothing to do   WATCHING   all that would take its jobs
+BURIED   how many more are buried than when this began
red       more are buried, or nobody watches a tube that has ready jobs`

// rows returns how many tubes fit on the screen: below the head and the titles, above the
// last line.
func (m *model) rows() int { return max(1, m.height-m.headLines()-2) }

func (m *model) headLines() int {
	if m.height < lowest {
		return 2
	}
	return 3
}

// View implements tea.Model.
func (m model) View() string {
	lines := m.head()
	switch {
	case m.help:
		lines = append(lines, strings.Split(helpText, "\n")...)
	case m.look != nil:
		lines = append(lines, m.lookLines()...)
	default:
		lines = append(lines, m.tubeLines()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-1)], m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return strings.Join(lines, "\n")
}

// head returns the lines about the server.
func (m *model) head() []string {
	s := &m.snap
	first := bold.Render(m.addr)
	if !s.At.IsZero() {
		first += fmt.Sprintf("  %s, up %s, %d connections, %d waiting", s.Version, s.Uptime.Round(time.Second), s.Connections, s.Waiting)
	}
	if s.Draining {
		first += alarming.Render("  draining")
	}
	lines := []string{
		first,
		fmt.Sprintf("jobs: %d ready, %d reserved, %d delayed, %d buried in %d tubes", s.Ready, s.Reserved, s.Delayed, s.Buried, len(s.Tubes)),
		fmt.Sprintf("a second: %s put, %s deleted, %s timed out", rate(s.PutRate), rate(s.DeleteRate), rate(s.TimeoutRate)),
	}
	return lines[:m.headLines()]
}

// foot returns the last line: what is asked, what was done, or which keys there are.
func (m *model) foot() string {
	switch {
	case m.ask != nil:
		return bold.Render(m.ask.text)
	case m.err != nil:
		return alarming.Render(m.err.Error())
	case m.filter.typing:
		return "filter: " + m.filter.text + "_"
	case m.help:
		return faint.Render("any key goes back")
	case m.look != nil:
		return faint.Render("left, right: another state   any other key: back")
	case m.note != "":
		return m.note
	case m.filter.text != "":
		return faint.Render("filter: " + m.filter.text + " (/ changes it)   ?: help   q: quit")
	}
	return faint.Render("?: help   /: filter   enter: look   p: pause   k: kick   c: clear   q: quit")
}

// tubeLines returns the titles and the tubes that fit.
func (m *model) tubeLines() []string {
	name, others := len(columns[0].title)+1, 0
	for _, t := range m.shown {
		name = max(name, ansi.StringWidth(t.Name))
	}
	for i := range columns {
		if m.columns[i] {
			others += columns[i].width
		}
	}
	name = min(name, max(minName, m.width-others))
	lines := []string{bold.Render(m.row(name, m.title))}
	for i := m.top; i < min(len(m.shown), m.top+m.rows()); i++ {
		t := &m.shown[i]
		line := m.row(name, func(c int) string { return columns[c].cell(t) })
		switch {
		case i == m.cursor:
			line = reversed.Render(ansi.Truncate(line+strings.Repeat(" ", max(0, m.width-ansi.StringWidth(line))), m.width, ""))
		case t.BuriedMore > 0 || t.deserted():
			line = alarming.Render(line)
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 && !m.snap.At.IsZero() {
		lines = append(lines, faint.Render("no tube has such a name"))
	}
	return lines
}

// title returns the title of a column, marked if the tubes are sorted by it.
func (m *model) title(c int) string {
	switch {
	case c != m.sort:
		return columns[c].title
	case m.reverse:
		return "^" + columns[c].title
	}
	return "v" + columns[c].title
}

// row returns a line of the columns that are shown, as far as they fit as a whole, the
// first to the left, and as wide as name.
func (m *model) row(name int, cell func(column int) string) string {
	var b strings.Builder
	first := ansi.Truncate(cell(0), name, "…")
	b.WriteString(first + strings.Repeat(" ", max(0, name-ansi.StringWidth(first))))
	left := m.width - name
	for c := 1; c < len(columns); c++ {
		if !m.columns[c] {
			continue
		}
		if left -= columns[c].width; left < 0 {
			break
		}
		fmt.Fprintf(&b, "%*s", columns[c].width, cell(c))
	}
	return b.String()
}

// lookLines returns the job that is looked at.
func (m *model) lookLines() []string {
	var tabs []string
	for i, s := range states {
		if i == m.look.state {
			s = reversed.Render(" " + s + " ")
		} else {
			s = " " + s + " "
		}
		tabs = append(tabs, s)
	}
	lines := []string{bold.Render(m.look.tube) + " " + strings.Join(tabs, "")}
	for line := range strings.Lines(ansi.Wrap(m.look.text, max(1, m.width), "")) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}
