package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// Messages: the server's answers, and the timers for the next requests.
type (
	snapshotMsg struct {
		snap Snapshot
		err  error
	}
	doneMsg struct {
		note string
		err  error
	}
	lookMsg  struct{ tube, state, text string }
	tickMsg  struct{} // the next snapshot is due
	clockMsg struct{} // a second has passed
)

// clock returns a command that updates the age of the screen every second.
func clock() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return clockMsg{} })
}

func (m *model) snapshot() tea.Cmd {
	return func() tea.Msg {
		snap, err := m.server.Snapshot()
		return snapshotMsg{snap, err}
	}
}

func (m *model) lookAt(tube, state string) tea.Cmd {
	return func() tea.Msg {
		text, err := m.server.Look(tube, state)
		if err != nil {
			text = cliutil.Line(err.Error())
		}
		return lookMsg{tube, state, text}
	}
}
