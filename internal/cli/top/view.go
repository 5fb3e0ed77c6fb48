package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// Lines of the screen that are not tubes: two at the top, the titles, one at the
// bottom.
const otherLines = 4

// minName is how wide the names of tubes are at least.
const minName = 12

// widths are those of the columns behind the name, with the blanks before them.
var widths = [...]int{8, 10, 9, 8, 9, 7, 7, 9}

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
q             quit`

// rows returns how many tubes fit on the screen.
func (m *model) rows() int { return max(1, m.height-otherLines) }

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

// head returns the two lines about the server.
func (m *model) head() []string {
	s := &m.snap
	first := bold.Render(m.addr)
	if !s.At.IsZero() {
		first += fmt.Sprintf("  %s, up %s, %d connections, %d waiting", s.Version, s.Uptime.Round(time.Second), s.Connections, s.Waiting)
	}
	if s.Draining {
		first += alarming.Render("  draining")
	}
	return []string{first, fmt.Sprintf("jobs: %d ready, %d reserved, %d delayed, %d buried in %d tubes",
		s.Ready, s.Reserved, s.Delayed, s.Buried, len(s.Tubes))}
}

// foot returns the last line: what is asked, what was done, or which keys there are.
func (m *model) foot() string {
	switch {
	case m.ask != nil:
		return bold.Render(m.ask.text)
	case m.err != nil:
		return alarming.Render(m.err.Error())
	case m.filter.Focused():
		return m.filter.View()
	case m.help:
		return faint.Render("any key goes back")
	case m.look != nil:
		return faint.Render("left, right: another state   any other key: back")
	case m.note != "":
		return m.note
	case m.filter.Value() != "":
		return faint.Render("filter: " + m.filter.Value() + " (/ changes it)   ?: help   q: quit")
	}
	return faint.Render("?: help   /: filter   enter: look   p: pause   k: kick   c: clear   q: quit")
}

// tubeLines returns the titles and the tubes that fit.
func (m *model) tubeLines() []string {
	name := minName
	for _, t := range m.shown {
		name = max(name, len(t.Name))
	}
	others := 0
	for _, w := range widths {
		others += w
	}
	name = min(name, max(minName, m.width-others))
	titles := make([]string, len(sortings))
	for i, s := range sortings {
		titles[i] = s.title
	}
	cells := append(titles, "PAUSED")
	lines := []string{m.titles(cells, name)}
	end := min(len(m.shown), m.top+m.rows())
	for i := m.top; i < end; i++ {
		line := row(tubeCells(&m.shown[i]), name)
		if i == m.cursor {
			line = reversed.Render(ansi.Truncate(line+strings.Repeat(" ", max(0, m.width-ansi.StringWidth(line))), m.width, ""))
		} else if m.shown[i].Buried > 0 {
			line = alarming.Render(line)
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 && !m.snap.At.IsZero() {
		lines = append(lines, faint.Render("no tube has such a name"))
	}
	return lines
}

// titles returns the titles of the columns, marked where the tubes are sorted.
func (m *model) titles(cells []string, name int) string {
	mark := "v"
	if m.reverse {
		mark = "^"
	}
	marked := make([]string, len(cells))
	copy(marked, cells)
	marked[m.sort] = mark + cells[m.sort]
	return bold.Render(row(marked, name))
}

// tubeCells returns the columns of a tube.
func tubeCells(t *Tube) []string {
	paused := ""
	if t.PauseLeft > 0 {
		paused = t.PauseLeft.Round(time.Second).String()
	}
	return []string{t.Name, count(t.Ready), count(t.Reserved), count(t.Delayed), count(t.Buried), count(t.Waiting),
		rate(t.PutRate), rate(t.DeleteRate), paused}
}

// row returns cells in columns, the first to the left, and as wide as name.
func row(cells []string, name int) string {
	var b strings.Builder
	first := ansi.Truncate(cells[0], name, "…")
	b.WriteString(first + strings.Repeat(" ", max(0, name-ansi.StringWidth(first))))
	for i, c := range cells[1:] {
		fmt.Fprintf(&b, "%*s", widths[i], c)
	}
	return b.String()
}

// count writes a number in six characters at most.
func count(n uint64) string {
	switch {
	case n < 1e6:
		return strconv.FormatUint(n, 10)
	case n < 1e7:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + "M"
	case n < 1e10:
		return strconv.FormatUint(n/1e6, 10) + "M"
	}
	return strconv.FormatUint(n/1e9, 10) + "G"
}

func rate(r float64) string {
	if r > 0 && r < 10 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return count(uint64(r + 0.5))
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
