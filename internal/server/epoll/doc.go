// Package epoll wraps the system calls of Linux for serving many sockets from one
// goroutine. A Poller waits for all of them at once; a Socket is one of them, and
// its methods never block:
//
//	p, err := epoll.New()
//	s, err := epoll.Take(conn) // away from package net
//	err = p.Add(s, index, epoll.Readable)
//	for _, ev := range p.Wait(-1) {
//		n, err := sockets[ev.Index].Read(buf)
//	}
//
// Waiting is level-triggered: what a loop leaves unread is reported again. The
// owner chooses the indexes, so it can find what belongs to a socket in a slice.
//
// A Poller and its sockets belong to one goroutine. Only Wake may be called from
// others.
//
// The package knows no protocol and no deadlines; the loops of package server and
// of package load are built on it. On other systems than Linux it is empty.
package epoll
