// Package top is the live view of a server's tubes in a terminal.
//
// A model (model.go) holds what is shown and changes by messages: keys, sizes of the
// terminal, and what a Server has told. It does no input and output itself; commands
// that bubbletea runs beside it ask the Server (ask.go). The screen is drawn from the
// model alone (view.go).
package top
