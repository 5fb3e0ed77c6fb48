package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// What comes back from the server, and when to ask it again.
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

// clock shows how old the screen is, whatever the server does.
func clock() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return clockMsg{} })
}

func (m *model) snapshot() tea.Cmd {
	names := m.onScreen()
	return func() tea.Msg {
		snap, err := m.server.Snapshot(names)
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
