package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// lowest is the minimum height of a terminal that shows the line with the server's rates.
const lowest = 10

// minName is the minimum width of the column of names, if a name is that long.
const minName = 12

var (
	bold     = ansi.NewStyle(ansi.AttrBold)
	reversed = ansi.NewStyle(ansi.AttrReverse)
	alarming = ansi.NewStyle(ansi.AttrRedForegroundColor)
	faint    = ansi.NewStyle(ansi.AttrFaint)
)

// helpLines contains the explanation of the keys and the columns.
var helpLines = strings.Split(`up, down, k, j, page up, page down, g, G   move
left, right   sort by another column
/             show tubes with a text in their name; esc: all
enter         show the next ready, delayed or buried job
p             pause the tube for an hour, or end its pause
K             kick up to 100 jobs: buried ones, or else delayed
q             quit;   p and K ask for confirmation

!         a bad finding, described for the selected tube: jobs are being
          buried, time out or loop; with --admin the findings are those of
          'beanpole attention'
AGE       time that the next job has been ready (with --admin, from beanpole)
WAITING   connections that wait for a job   WATCHING   all that watch the tube`, "\n")

// rows returns the number of tubes that fit between the titles and the last line.
func (m *model) rows() int { return max(1, m.height-m.headLines()-2) }

func (m *model) headLines() int {
	lines := 2
	if m.height >= lowest {
		lines++
	}
	return lines + min(len(m.snap.found), 1)
}

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

// screen returns the text of the screen.
func (m *model) screen() string {
	lines := m.head()
	switch {
	case m.help:
		lines = append(lines, helpLines...)
	case m.look != nil:
		lines = append(lines, m.lookLines()...)
	default:
		lines = append(lines, m.tubeLines()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	// The last cell stays empty, because the cursor would be there when bubbletea shrinks
	// the screen, which erases everything after the cursor.
	lines = append(lines[:max(0, m.height-1)], ansi.Truncate(m.foot(), max(0, m.width-1), ""))
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return strings.Join(lines, "\n")
}

// head returns the lines about the server.
func (m *model) head() []string {
	s := &m.snap
	first := bold.Styled(m.addr) + "  " + m.freshness()
	if !s.At.IsZero() {
		version := "beanstalkd " + s.Version
		if s.Server != "" {
			version = s.Server + " " + s.ServerVersion
		}
		first += fmt.Sprintf("  %s, up %s, %s, %d waiting", version, s.Uptime.Round(time.Second), cliutil.Count(s.Connections, "connection"), s.Waiting)
	}
	jobs := fmt.Sprintf("jobs: %d ready, %d reserved, %d delayed, %d buried in %d tubes", s.JobsReady, s.JobsReserved, s.JobsDelayed, s.JobsBuried, len(s.Tubes))
	if n := s.findings(); n > 0 {
		jobs += alarming.Styled(", " + cliutil.Count(n, "finding"))
	}
	lines := []string{
		first,
		jobs,
		fmt.Sprintf("a second: %s put, %s deleted, %s timed out", rate(s.putRate), rate(s.deleteRate), rate(s.timeoutRate)),
	}
	if len(s.found) > 0 {
		var wrong []string
		for i := range s.found {
			wrong = append(wrong, s.found[i].Text)
		}
		lines = slices.Insert(lines, 1, alarming.Styled(strings.Join(wrong, "; ")))
	}
	return lines[:m.headLines()]
}

// findings returns the number of findings.
func (s *Snapshot) findings() int {
	n := len(s.found)
	for i := range s.Tubes {
		n += len(s.Tubes[i].found)
	}
	return n
}

// patience is the age of a snapshot above which the view shows a warning.
const patience = 3 * time.Second

// freshness returns a text with the age of the snapshot.
func (m *model) freshness() string {
	if m.snap.At.IsZero() {
		return "asking ..."
	}
	old := max(0, m.now().Sub(m.snap.At)).Truncate(time.Second)
	if old > m.every+patience {
		return alarming.Styled("NO ANSWER FOR " + age(old))
	}
	return age(old) + " old"
}

// foot returns the last line: a question, the result of an action, or the keys.
func (m *model) foot() string {
	const keys = "?: help   /: filter   enter: look   p: pause   K: kick   q: quit"
	switch {
	case m.ask != nil:
		return bold.Styled(m.ask.text)
	case m.typing:
		return "filter: " + m.filter + "_"
	case m.note.failed:
		return alarming.Styled(m.note.text)
	case m.note.text != "":
		return m.note.text
	case m.err != nil:
		return alarming.Styled(m.err.Error())
	case m.help:
		return faint.Styled("any key: back")
	case m.look != nil:
		return faint.Styled("left, right: another state   any other key: back")
	case m.filter != "":
		return faint.Styled("filter: " + m.filter + " (/ changes it, esc ends it)   ?: help   q: quit")
	}
	if t := m.current(); t != nil && len(t.found) > 0 {
		return bold.Styled(t.Name+": "+t.found[0].Text) + faint.Styled("   "+keys)
	}
	return faint.Styled(keys)
}

// tubeLines returns the titles and as many tubes as fit on the screen.
func (m *model) tubeLines() []string {
	width, others := len(columns[name].title)+1, 0
	for _, t := range m.shown {
		width = max(width, ansi.StringWidth(t.Name))
	}
	for _, c := range columns {
		others += c.width
	}
	width = min(width, max(minName, m.width-others))
	lines := []string{bold.Styled(m.title(byAttention) + m.row(width, m.title))}
	for i := m.top; i < min(len(m.shown), m.top+m.rows()); i++ {
		t := &m.shown[i]
		cell := func(c int) string { return columns[c].cell(t) }
		cursor := " "
		if i == m.cursor {
			cursor = ">" // for terminals without color
		}
		line := fmt.Sprintf("%s%-1s%s", cursor, cell(byAttention), m.row(width, cell))
		switch {
		case i == m.cursor:
			line = reversed.Styled(ansi.Truncate(line+strings.Repeat(" ", max(0, m.width-ansi.StringWidth(line))), m.width, ""))
		case t.alarming():
			line = alarming.Styled(line)
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 && !m.snap.At.IsZero() {
		lines = append(lines, faint.Styled("no tube has such a name"))
	}
	return lines
}

// title returns the title of a column. The title is marked if the tubes are sorted by
// that column.
func (m *model) title(c int) string {
	mark := ""
	switch c {
	case m.sort:
		mark = "v"
	case byAttention:
		mark = " "
	}
	return mark + columns[c].title
}

// row returns a line with the columns that fit entirely. The name is padded to width.
func (m *model) row(width int, cell func(column int) string) string {
	var b strings.Builder
	first := ansi.Truncate(cell(name), width, "…")
	b.WriteString(first + strings.Repeat(" ", max(0, width-ansi.StringWidth(first))))
	left := m.width - width - columns[byAttention].width
	for c := name + 1; c < len(columns); c++ {
		if left -= columns[c].width; left < 0 {
			break
		}
		fmt.Fprintf(&b, "%*s", columns[c].width, cell(c))
	}
	return b.String()
}

// lookLines returns the lines of the visible job.
func (m *model) lookLines() []string {
	var tabs []string
	for i, s := range op.IdleStates {
		if i == m.look.state {
			s = reversed.Styled(" " + s + " ")
		} else {
			s = " " + s + " "
		}
		tabs = append(tabs, s)
	}
	lines := []string{bold.Styled(m.look.tube) + " " + strings.Join(tabs, "")}
	for line := range strings.Lines(ansi.Wrap(m.look.text, max(1, m.width), "")) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}
