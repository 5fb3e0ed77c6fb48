// Package background keeps the program from asking the terminal what colour its
// background is. The package bubbletea does so whenever a program starts that has it,
// be it a server: it writes an escape sequence and waits up to five seconds for an
// answer. Nothing of ours depends on that colour.
//
// Packages are initialized in the order of their import paths as far as what they
// import allows, and this path sorts before that of bubbletea, so this comes first.
package background

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
