package top

import tea "charm.land/bubbletea/v2"

// key does what a key asks for.
func (m model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch {
	case k.String() == "ctrl+c":
		return m, tea.Quit
	case m.filter.typing:
		return m.typeFilter(k)
	case m.help:
		return m.helpKey(k)
	case m.look != nil:
		return m.lookKey(k)
	}
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
	case "enter":
		if t := m.current(); t != nil {
			m.look = &glance{tube: t.Name, text: "..."}
			return m, m.lookAt(t.Name, states[0])
		}
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

// helpKey scrolls the help, or goes back to the tubes.
func (m model) helpKey(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
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
func (m model) typeFilter(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k.String() {
	case "enter":
		m.filter.typing = false
	case "esc":
		m.filter = line{}
	default:
		m.filter.key(k)
	}
	m.arrange()
	return m, nil
}

// lookKey turns to the job of another state, or back to the tubes.
func (m model) lookKey(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
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
