// Package top implements a live view of a server's tubes in a terminal.
//
// A model (model.go) contains the state of the view. Messages change the model: keys,
// sizes of the terminal and answers of the Server. The model does no input or output;
// commands that bubbletea runs concurrently query the Server (ask.go). The screen depends
// only on the model (view.go).
package top
