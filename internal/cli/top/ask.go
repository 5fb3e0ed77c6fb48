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
		*question
		note string
		err  error
	}
	lookMsg  struct{ tube, state, text string }
	tickMsg  struct{} // it is time to ask again
	clockMsg struct{} // a second is over
)

// clock returns a command that updates the age of the screen each second.
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
