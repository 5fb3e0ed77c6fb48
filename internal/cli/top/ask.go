package top

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
)

// What comes back from the server, and when to ask it again.
type (
	snapshotMsg struct {
		snap Snapshot
		err  error
	}
	doneMsg struct {
		note   string
		err    error
		tube   string
		change func(*Tube) // what it has changed; nil: the next snapshot shows it
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

func (m *model) pause(tube string, d time.Duration) tea.Cmd {
	return func() tea.Msg {
		note := fmt.Sprintf("%s is paused for %s", tube, age(d, true))
		if d == 0 {
			note = tube + " is not paused any more"
		}
		return doneMsg{note, m.server.Pause(tube, d), tube, func(t *Tube) { t.PauseLeft = d }}
	}
}

func (m *model) kick(tube string, count int) tea.Cmd {
	return func() tea.Msg {
		n, err := m.server.Kick(tube, count)
		return doneMsg{note: fmt.Sprintf("jobs of %s that were made ready: %d", tube, n), err: err}
	}
}

func (m *model) clear(tube, state string) tea.Cmd {
	return func() tea.Msg {
		n, err := m.server.Clear(tube, state)
		return doneMsg{note: fmt.Sprintf("%s jobs of %s that were deleted: %d", state, tube, n), err: err}
	}
}

func (m *model) lookAt(tube, state string) tea.Cmd {
	return func() tea.Msg {
		text, err := m.server.Look(tube, state)
		if err != nil {
			text = err.Error()
		}
		return lookMsg{tube, state, text}
	}
}
