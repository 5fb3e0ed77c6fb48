package top

import (
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A line is a line of text that the user edits at its end.
type line struct {
	text   string
	typing bool
}

// key handles a key: it adds or deletes text.
func (l *line) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "backspace", "ctrl+h":
		runes := []rune(l.text)
		l.text = string(runes[:max(len(runes)-1, 0)])
	default:
		l.add(k.Text)
	}
}

// add adds typed or pasted text, without invisible characters.
func (l *line) add(text string) {
	for _, r := range text {
		if unicode.IsGraphic(r) {
			l.text += string(r)
		}
	}
}
