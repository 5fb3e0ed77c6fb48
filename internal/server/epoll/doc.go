// Package epoll wraps the Linux system calls for serving many sockets from one goroutine.
// A Poller waits for all sockets at once. A Socket is one of them, and its methods never
// block:
//
//	p, err := epoll.New()
//	s, err := epoll.Take(conn) // takes the socket from package net
//	err = p.Add(s, index, epoll.Readable)
//	for _, ev := range p.Wait(-1) {
//		n, err := sockets[ev.Index].Read(buf)
//	}
//
// Waiting is level-triggered: Wait reports unread input again. The owner chooses the
// indexes, so it can use them in a slice.
//
// A Poller and its sockets belong to one goroutine. Only Wake can be called from other
// goroutines.
//
// The package contains no protocol and no deadlines; the loops of packages server and
// load use it. On systems other than Linux, it is empty.
package epoll
