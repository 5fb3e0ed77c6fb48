package top

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// What comes back from the server, and when to ask it again.
type (
	snapshotMsg struct {
		snap Snapshot
		err  error
	}
	doneMsg struct {
		note string
		err  error
	}
	lookMsg struct{ tube, state, text string }
	tickMsg struct{}
)

func (m *model) snapshot() tea.Cmd {
	return func() tea.Msg {
		snap, err := m.server.Snapshot()
		return snapshotMsg{snap, err}
	}
}

func (m *model) pause(tube string, d time.Duration) tea.Cmd {
	return func() tea.Msg {
		note := fmt.Sprintf("%s is paused for %s", tube, d)
		if d == 0 {
			note = tube + " is not paused any more"
		}
		return doneMsg{note, m.server.Pause(tube, d)}
	}
}

func (m *model) kick(tube string, count int) tea.Cmd {
	return func() tea.Msg {
		n, err := m.server.Kick(tube, count)
		return doneMsg{fmt.Sprintf("kicked %d jobs of %s", n, tube), err}
	}
}

func (m *model) clear(tube, state string) tea.Cmd {
	return func() tea.Msg {
		n, err := m.server.Clear(tube, state)
		return doneMsg{fmt.Sprintf("deleted %d %s jobs of %s", n, state, tube), err}
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
