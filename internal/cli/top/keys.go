package top

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/beanpole-mq/beanpole/internal/op"
)

// key handles a key.
func (m model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch {
	case k.String() == "ctrl+c":
		return m, tea.Quit
	case m.ask != nil:
		return m.answer(k)
	case m.typing:
		return m.typeFilter(k)
	case m.help: // any other key closes it
		m.help = false
		return m, nil
	case m.look != nil:
		return m.lookKey(k)
	}
	m.note = note{}
	switch k.String() {
	case "q":
		return m, tea.Quit
	case "?", "h":
		m.help = true
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
		m.sortBy(m.sort + 1)
	case "left":
		m.sortBy(m.sort + len(columns) - 1)
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
		m.arrange()
	default:
		return m.tubeKey(k.String())
	}
	return m, nil
}

// sortBy sorts by a column. The first column follows the last.
func (m *model) sortBy(column int) {
	m.sort = column % len(columns)
	m.arrange()
}

// pauseFor is the duration of a pause that the key p starts.
const pauseFor = time.Hour

// kickCount is the maximum number of jobs that the key K kicks.
const kickCount = 100

// tubeKey handles a key that applies to the tube under the cursor.
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
	case "enter":
		m.look = &glance{tube: t.Name, text: "..."}
		return m, m.lookAt(t.Name, op.IdleStates[0])
	}
	return m, nil
}

// askToPause asks whether to pause a tube, or to end its pause.
func (m *model) askToPause(t *Tube) {
	d, text := pauseFor, fmt.Sprintf("pause %s for %s? Workers get no jobs from it. y/n", t.Name, age(pauseFor))
	doing, done := "pausing "+t.Name, fmt.Sprintf("%s is paused for %s", t.Name, age(pauseFor))
	if t.PauseLeft > 0 {
		d, text = 0, fmt.Sprintf("end the pause of %s, which has %s left? y/n", t.Name, ageIfAny(t.PauseLeft))
		doing, done = "ending the pause of "+t.Name, t.Name+" is no longer paused"
	}
	m.ask = &question{text, doing, func() (string, error) { return done, m.server.Pause(t.Name, d) }}
}

// askToKick asks whether to kick buried jobs or, if there are none, delayed jobs.
func (m *model) askToKick(t *Tube) {
	state, jobs := "buried", t.Jobs.Buried
	if jobs == 0 {
		state, jobs = "delayed", t.Jobs.Delayed
	}
	if jobs == 0 {
		m.say(t.Name + " has no jobs to kick")
		return
	}
	m.ask = &question{
		fmt.Sprintf("make %d of the %d %s jobs of %s ready? y/n", min(jobs, kickCount), jobs, state, t.Name),
		"kicking jobs of " + t.Name,
		func() (string, error) {
			n, err := m.server.Kick(t.Name, kickCount)
			return fmt.Sprintf("jobs of %s that were made ready: %d", t.Name, n), err
		},
	}
}

// answer handles the key that answers a question. Any key except y means no.
func (m model) answer(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	q := m.ask
	m.ask = nil
	if k.String() != "y" {
		m.say("nothing was done")
		return m, nil
	}
	m.say(q.doing + " ...")
	return m, func() tea.Msg {
		note, err := q.do()
		return doneMsg{note, err}
	}
}

// typeFilter handles a key while the user edits the filter.
func (m model) typeFilter(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.filter, m.typing = "", false
	case "backspace":
		runes := []rune(m.filter)
		m.filter = string(runes[:max(len(runes)-1, 0)])
	default:
		m.filter += k.Text
	}
	m.arrange()
	return m, nil
}

// lookKey handles a key while a job is visible.
func (m model) lookKey(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	step := 0
	switch k.String() {
	case "right", "tab":
		step = 1
	case "left":
		step = len(op.IdleStates) - 1
	default:
		m.look = nil
		return m, nil
	}
	m.look = &glance{tube: m.look.tube, state: (m.look.state + step) % len(op.IdleStates), text: "..."}
	return m, m.lookAt(m.look.tube, op.IdleStates[m.look.state])
}
