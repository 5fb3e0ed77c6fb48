// Package daemon is the life of a server as a process: it starts what the settings say, puts
// the pieces together, follows signals, and stops in good order. It decides nothing about
// jobs, and is the only place where the pieces meet.
//
//	plan.go     what the settings come to; also for "beanpole config check"
//	sockets.go  opens them, or takes those of a service manager; user.go becomes another user
//	queue.go    the queue: in memory, from a journal, or that of a member (member.go)
//	admin.go    the admin pages; operations.go the API that they and other members ask
//	serve.go    all of that in its order
//	signals.go  what ends or changes a server that runs; reload.go reads the settings again
//
// Start reading at Run.
package daemon
