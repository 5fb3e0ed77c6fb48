// Package daemon runs a server as a process. It applies the settings, connects the other
// packages, handles signals, and performs an orderly stop. It contains no rules about
// jobs.
//
//	plan.go     validates the settings, for the server and "beanpole config check"
//	sockets.go  opens the sockets or inherits them; user.go changes the user
//	queue.go    opens the queue: in memory, from a journal, or a member's (member.go)
//	admin.go    serves the admin listeners; operations.go creates the API behind them
//	serve.go    calls all of these in order
//	signals.go  handles signals; reload.go reads the settings again
//
// Start reading at Run.
package daemon
